import { useEffect, useState } from "preact/hooks";
import { Refused } from "./api/ask.ts";
import { closeLink } from "./api/link.ts";
import { Board } from "./board/Board.tsx";
import { followSessions } from "./board/sessions.ts";
import { lazyPage } from "./lazyPage.tsx";
import type { PairingLink } from "./pairing/link.ts";
import { followOffers } from "./handover/offers.ts";
import { Login } from "./login/Login.tsx";
import { findScopes, serverSchema } from "./login/scopes.ts";
import { token } from "./login/token.ts";
import { followRequests } from "./requests/requests.ts";
import { addressOf, place } from "./router.ts";
import { SessionPage } from "./session/SessionPage.tsx";
import { Empty, Loading } from "./ui/parts.tsx";
import { Shell } from "./ui/Shell.tsx";
import { SCHEMA_VERSION } from "./version.ts";

const TerminalPage = lazyPage(() => import("./terminal/TerminalPage.tsx").then((each) => each.TerminalPage));
const TerminalsPage = lazyPage(() => import("./lists/Terminals.tsx").then((each) => each.Terminals));
const WallPage = lazyPage(() => import("./wall/Wall.tsx").then((each) => each.Wall));
const ProjectsPage = lazyPage(() => import("./lists/Projects.tsx").then((each) => each.Projects));
const AuditPage = lazyPage(() => import("./lists/Audit.tsx").then((each) => each.Audit));
const DevicesPage = lazyPage(() => import("./devices/Devices.tsx").then((each) => each.Devices));
const PairPage = lazyPage(() => import("./pairing/PairPage.tsx").then((each) => each.PairPage));
const SettingsPage = lazyPage(() => import("./settings/Settings.tsx").then((each) => each.Settings));

/** How long to wait before asking a server again that did not answer at first. */
const AGAIN_MS = 2_000;

export function App({ pairing }: { pairing: PairingLink | null }) {
  if (place.value.page === "pair") return <PairPage link={pairing} />;
  if (token.value === null) return <Login />;
  return <LoggedIn key={token.value} />;
}

/** Everything behind a login; a new login starts all of it anew. */
function LoggedIn() {
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    let timer = 0;
    let stop = () => {};
    let isShown = true;
    const start = async () => {
      try {
        await findScopes();
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        timer = setTimeout(start, AGAIN_MS);
        return;
      }
      if (!isShown) return;
      const stops = [followSessions(), followRequests(), followOffers()];
      stop = () => stops.forEach((each) => each());
      setReady(true);
    };
    void start();
    return () => {
      isShown = false;
      clearTimeout(timer);
      stop();
      closeLink();
    };
  }, []);
  if (!isReady) return <div class="page"><Loading /></div>;
  if (serverSchema.value !== SCHEMA_VERSION) return <OtherVersion />;
  const { page } = place.value;
  if (page === "wall") return <WallPage id="" />;
  if (page === "terminal") return <TerminalPage id={place.value.id} />;
  return (
    <Shell>
      <CurrentPage />
    </Shell>
  );
}

function OtherVersion() {
  return (
    <Empty title={`This page does not fit the server (schema ${serverSchema.value})`}>
      <p>The server was upgraded, or is older than this page.</p>
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </Empty>
  );
}

function CurrentPage() {
  const { page, id } = place.value;
  switch (page) {
    case "":
      return <Board />;
    case "session":
      return <SessionPage key={id} id={id} />;
    case "terminals":
      return <TerminalsPage id="" />;
    case "projects":
      return <ProjectsPage id="" />;
    case "audit":
      return <AuditPage id="" />;
    case "devices":
      return <DevicesPage id="" />;
    case "settings":
      return <SettingsPage id="" />;
    default:
      return (
        <Empty title="There is no such page">
          <p>
            <a href={addressOf("")}>All sessions</a>
          </p>
        </Empty>
      );
  }
}
