import { effect } from "@preact/signals";
import { render } from "preact";
import { watchLink } from "./api/link.ts";
import { App } from "./App.tsx";
import { loadIdentity } from "./keys/identity.ts";
import { spendTicket, takeTicket } from "./login/token.ts";
import { takePairingLink } from "./pairing/link.ts";
import { startWorker } from "./pwa.ts";
import { place, watchPlace } from "./router.ts";
import { watchClock } from "./text/ages.ts";
import "./styles/index.css";

// First of all: what the address's fragment holds is secret.
const ticket = takeTicket();
const pairing = takePairingLink();
watchPlace();
watchLink();
watchClock();
startWorker();
await loadIdentity();
if (ticket !== null) await spendTicket(ticket);
const root = document.getElementById("app");
if (root) render(<App pairing={pairing} />, root);
effect(() => {
  document.documentElement.dataset["page"] = place.value.page || "board";
});
