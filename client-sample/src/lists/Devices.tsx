import { Empty, PageHead } from "../ui/parts.tsx";

/** The paired devices. */
export function Devices(_: { id: string }) {
  return (
    <div class="page">
      <PageHead title="Devices" />
      <Empty title="Pair a phone">
        <p>
          Run <code>sidestage pair</code> on the machine.
        </p>
      </Empty>
    </div>
  );
}
