// Shared by both tabs: requests to the service, DOM elements, number formats.

let key = null; // the API key, kept in memory while the page is open
let newKey = null; // while the form for a key is open: a promise, for which all refused requests wait

export async function call(path, body) {
  const headers = { Accept: "application/json" };
  if (body) headers["Content-Type"] = "application/json";
  const sent = key;
  if (sent) headers.Authorization = `Bearer ${sent}`;
  const options = { headers, method: body ? "POST" : "GET", body: body && JSON.stringify(body) };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The service cannot be reached.");
  }
  if (response.status === 401) {
    if (sent === key) await (newKey ??= askForKey());
    return call(path, body);
  }
  const content = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(content.message || `The service answered ${response.status}.`);
  return content;
}

function askForKey() {
  const form = document.getElementById("key");
  const field = document.getElementById("key-value");
  const problem = document.getElementById("key-problem");
  problem.textContent = key === null ? "" : "This key was not accepted.";
  form.hidden = false;
  field.value = "";
  field.focus();
  return new Promise((resolve) => {
    form.onsubmit = (event) => {
      event.preventDefault();
      if (/[^\t -\xff]/.test(field.value)) { // a header cannot have it
        problem.textContent = "This has a character that no key has, such as a curly quotation mark.";
        return;
      }
      key = field.value;
      newKey = null;
      form.hidden = true;
      resolve();
    };
  });
}

// element("p", { class: "meta" }, "text", other): strings become text nodes, never HTML.
export function element(name, attributes = {}, ...children) {
  const created = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (attribute.startsWith("on")) created.addEventListener(attribute.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) created.setAttribute(attribute, value);
  }
  created.append(...children.filter((child) => child !== null && child !== undefined));
  return created;
}

export function show(place, ...children) {
  place.replaceChildren(...children.filter(Boolean));
}

export function alertCard(message) {
  return element("p", { class: "card alert", role: "alert" }, message);
}

// Run the action of a form with its button disabled. An error is shown in place of the result.
export async function working(form, place, work) {
  const button = form.querySelector(":scope > button, .row > button");
  button.disabled = true;
  place.setAttribute("aria-busy", "true");
  try {
    await work();
  } catch (error) {
    show(place, alertCard(error.message));
  } finally {
    button.disabled = false;
    place.removeAttribute("aria-busy");
  }
}

export const count = (number) => number.toLocaleString("en");
export const ms = (number) => `${number < 10 ? number.toFixed(1) : Math.round(number)}\u00a0ms`;
export const score = (number) => (Math.abs(number) >= 100 ? number.toFixed(0) : number.toFixed(2));
export const percent = (probability) =>
  `${(100 * probability).toFixed(probability > 0.99 || probability < 0.01 ? 1 : 0)}\u00a0%`;
