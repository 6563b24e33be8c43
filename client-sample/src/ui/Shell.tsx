import type { ComponentChildren } from "preact";
import { lastHeardAt, linkState, retryNow } from "../api/link.ts";
import { scopes } from "../login/scopes.ts";
import { addressOf, type Page, place } from "../router.ts";
import { formatTime } from "../text/ages.ts";
import { Icon, type IconName } from "./Icon.tsx";

interface Entry {
  page: Page;
  label: string;
  icon: IconName;
  /** On a phone the bar has room for four; the rest is reached from Settings. */
  isMain: boolean;
  needs?: "ADMIN";
}

const ENTRIES: Entry[] = [
  { page: "", label: "Sessions", icon: "board", isMain: true },
  { page: "terminals", label: "Terminals", icon: "terminal", isMain: true },
  { page: "wall", label: "Wall", icon: "wall", isMain: true },
  { page: "projects", label: "Projects", icon: "folder", isMain: false },
  { page: "devices", label: "Devices", icon: "device", isMain: false, needs: "ADMIN" },
  { page: "audit", label: "Audit log", icon: "audit", isMain: false, needs: "ADMIN" },
  { page: "settings", label: "Settings", icon: "settings", isMain: true },
];

/** The entries this login may open. */
export function entries(): Entry[] {
  return ENTRIES.filter((entry) => !entry.needs || scopes.value.admin);
}

export function Shell({ children }: { children: ComponentChildren }) {
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <nav class="nav" aria-label="Pages">
        <a class="brand" href={addressOf("")}>
          <img src="./icon.svg" alt="" width="28" height="28" />
          Sidestage
        </a>
        {entries().map((entry) => (
          <NavLink key={entry.page} entry={entry} />
        ))}
        <div class="nav-foot">
          <LinkStatus />
        </div>
      </nav>
      <main id="main" tabIndex={-1}>
        <OfflineBar />
        {children}
      </main>
    </div>
  );
}

function NavLink({ entry }: { entry: Entry }) {
  const isHere = place.value.page === entry.page;
  return (
    <a
      class={`nav-link${entry.isMain ? "" : " nav-more"}`}
      href={addressOf(entry.page)}
      aria-current={isHere ? "page" : undefined}
    >
      <Icon name={entry.icon} />
      <span>{entry.label}</span>
    </a>
  );
}

function LinkStatus() {
  const state = linkState.value;
  const words = { connecting: "Connecting…", online: "Live", offline: "Offline", "too-old": "Needs a reload" };
  return (
    <span class={`link-status link-${state.kind}`} role="status">
      <span class="dot" aria-hidden="true" />
      {words[state.kind]}
    </span>
  );
}

/** Says that what is shown is old, and since when; the list itself stays readable. */
function OfflineBar() {
  const state = linkState.value;
  if (state.kind === "too-old") {
    return (
      <div class="bar" role="alert">
        <span>This page is too old or too new for the server.</span>
        <button type="button" onClick={() => location.reload()}>
          Reload
        </button>
      </div>
    );
  }
  if (state.kind !== "offline") return null;
  const since = lastHeardAt.value || state.since;
  return (
    <div class="bar" role="status">
      <span>
        {state.busy ? "The server is busy. " : ""}Offline since {formatTime(since)}. What you see is from then.
      </span>
      <button type="button" onClick={retryNow}>
        Try now
      </button>
    </div>
  );
}
