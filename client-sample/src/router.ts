import { signal } from "@preact/signals";
import { baseUrl } from "./ui/base.ts";

/**
 * The client's addresses have one segment, so that every file can be named relative to
 * the page: the client works below any path prefix. What a page is about is in the query.
 */
export const PAGES = [
  "", "audit", "devices", "pair", "projects", "session", "settings", "terminal", "terminals", "wall",
] as const;

export type Page = (typeof PAGES)[number];

export interface Place {
  page: Page | null;
  id: string;
}

function readPlace(): Place {
  const name = location.pathname.slice(baseUrl.pathname.length);
  const page = PAGES.find((each) => each === name) ?? null;
  return { page, id: new URLSearchParams(location.search).get("id") ?? "" };
}

/** Where the person is. */
export const place = signal<Place>(readPlace());

/** Returns the address of a page. */
export function addressOf(page: Page, id = ""): string {
  return `./${page}${id ? `?id=${encodeURIComponent(id)}` : ""}`;
}

/** Goes to a page. */
export function go(page: Page, id = ""): void {
  history.pushState(null, "", new URL(addressOf(page, id), baseUrl));
  place.value = readPlace();
  scrollTo(0, 0);
}

/** Follows the browser's own buttons, and clicks on links to our pages. */
export function watchPlace(): void {
  addEventListener("popstate", () => {
    place.value = readPlace();
  });
  addEventListener("click", (event) => {
    const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
    const anchor = (event.target as Element).closest?.("a");
    if (!isPlain || event.defaultPrevented || !anchor || anchor.target || anchor.origin !== location.origin) return;
    const name = anchor.pathname.slice(baseUrl.pathname.length);
    if (!anchor.pathname.startsWith(baseUrl.pathname) || !(PAGES as readonly string[]).includes(name)) return;
    event.preventDefault();
    go(name as Page, new URLSearchParams(anchor.search).get("id") ?? "");
  });
}
