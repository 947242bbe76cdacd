/* Browsers start no workers from file:// pages. The search of a site that is opened from a folder
   runs in a hidden iframe instead. The site generator looks for a script of this name. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inner = this.frame.contentWindow;
      // The script of the worker answers with postMessage(). Data is copied, as workers do.
      inner.postMessage = (data) => this.deliver(this, MessageEvent, data);
      inner.importScripts = (...urls) =>
        urls.reduce((before, each) => before.then(() => this.load(each)), Promise.resolve());
      this.ready = this.load(url);
    }

    deliver(target, Event, data) {
      const copied = structuredClone(data);
      setTimeout(() => {
        const event = new Event("message", { data: copied });
        target.dispatchEvent(event);
        if (target.onmessage) target.onmessage(event);
      });
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = String(url);
        script.onload = resolve;
        script.onerror = reject;
        this.frame.contentDocument.body.append(script);
      });
    }

    postMessage(data) {
      const inner = this.frame.contentWindow;
      this.ready.then(() => this.deliver(inner, inner.MessageEvent, data));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
