// The page: two tabs, both started after `/info` has said what the service offers.

import { call } from "./shared.js";
import { startAsking } from "./ask.js";
import { startComparing } from "./compare.js";

const tabs = [...document.querySelectorAll("[role=tab]")];

function choose(tab) {
  for (const each of tabs) {
    const chosen = each === tab;
    each.setAttribute("aria-selected", String(chosen));
    each.tabIndex = chosen ? 0 : -1;
    document.getElementById(each.getAttribute("aria-controls")).hidden = !chosen;
  }
  history.replaceState(null, "", tab.id === "tab-ask" ? "#" : "#compare");
}

for (const [position, tab] of tabs.entries()) {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(position + step + tabs.length) % tabs.length];
    next.focus();
    choose(next);
  });
}
if (location.hash === "#compare") choose(tabs[1]);

const info = await call("/info").catch(() => null);
startAsking(info);
startComparing(info);
document.documentElement.dataset.ready = "true";
