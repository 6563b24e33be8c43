import { serverUrl } from "./ui/base.ts";

/**
 * Installs the service worker that keeps the client's own files, so that it opens while
 * the server is away. Over TLS only: on plain http a page cannot be trusted to stay ours.
 */
export function startWorker(): void {
  if (location.protocol !== "https:" || !("serviceWorker" in navigator)) return;
  const address = serverUrl("sw.js");
  const policy = window.trustedTypes?.createPolicy("sidestage", {
    // The one script address that code of ours ever names.
    createScriptURL: (text) => {
      if (text !== address) throw new TypeError("not an address of ours");
      return text;
    },
  });
  const script = policy ? policy.createScriptURL(address) : address;
  navigator.serviceWorker.register(script as string).catch(() => {
    // Without it the client works as before; it only does not open offline.
  });
}
