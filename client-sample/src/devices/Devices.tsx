import { ask, payload } from "../api/ask.ts";
import { useFeed } from "../api/useFeed.ts";
import { formatTime } from "../text/ages.ts";
import { Age, Empty, Loading, Notice, PageHead } from "../ui/parts.tsx";
import { useAction } from "../ui/useAction.ts";
import { type DeviceRow, DevicesFeed, RenameDevice, RevokeDevice } from "./documents.ts";
import { PairForm } from "./PairForm.tsx";

/** The paired devices: what each may do, a way to cut it off, and to pair another. */
export function Devices(_: { id: string }) {
  const view = useFeed(DevicesFeed, {}, (data) => data.deviceFeed);
  const devices = [...view.rows.values()].sort((a, b) => (a.pairedAt < b.pairedAt ? 1 : -1));
  const live = devices.filter((device) => device.state !== "REVOKED");
  const revoked = devices.filter((device) => device.state === "REVOKED");
  return (
    <div class="page">
      <PageHead title="Devices" />
      <p class="lead">Only a paired device can answer what an agent asks, by a key of its own.</p>
      <PairForm />
      {view.ended ? <Notice tone="bad">{view.ended}</Notice> : null}
      {view.isComplete ? null : <Loading rows={2} />}
      {view.isComplete && devices.length === 0 ? <Empty title="No device is paired yet" /> : null}
      {live.length > 0 ? (
        <ul class="rows">
          {live.map((device) => (
            <Device key={device.id} device={device} />
          ))}
        </ul>
      ) : null}
      {revoked.length > 0 ? (
        <details class="session-more">
          <summary>Revoked devices ({revoked.length})</summary>
          <ul class="rows">
            {revoked.map((device) => (
              <Device key={device.id} device={device} />
            ))}
          </ul>
        </details>
      ) : null}
    </div>
  );
}

function Device({ device }: { device: DeviceRow }) {
  const isLive = device.state !== "REVOKED";
  const revoke = useAction(async () => {
    const words = device.isCaller ? "Cut this browser itself off?" : `Cut ${device.name} off for good?`;
    if (!confirm(words)) return;
    const { revokeDevice } = await ask(RevokeDevice, { input: { deviceId: device.id } });
    payload(revokeDevice, "RevokeDevicePayload");
  });
  const rename = useAction(async () => {
    const name = prompt("Name of this device", device.name)?.trim();
    if (!name || name === device.name) return;
    const { renameDevice } = await ask(RenameDevice, { input: { deviceId: device.id, name } });
    payload(renameDevice, "RenameDevicePayload");
  });
  const failure = revoke.failure ?? rename.failure;
  return (
    <li class="row row-flat">
      <div class="row-main">
        <span class="row-name" dir="auto">
          {device.name}
          {device.isCaller ? <span class="muted"> (this browser)</span> : null}
        </span>
        <span class="muted row-small">
          {device.platform} · {device.scopes.join(", ").toLowerCase()}
          {device.content === "SEALED" ? " · sealed" : ""}
        </span>
        <span class="muted row-small">{isLive ? <LastSeen device={device} /> : `revoked ${formatTime(device.revokedAt)}`}</span>
        {failure ? <Notice tone="bad">{failure}</Notice> : null}
      </div>
      {isLive ? (
        <div class="row-actions">
          <button type="button" class="quiet" onClick={rename.run}>
            Rename
          </button>
          <button type="button" disabled={revoke.isBusy} onClick={revoke.run}>
            Revoke
          </button>
        </div>
      ) : null}
    </li>
  );
}

function LastSeen({ device }: { device: DeviceRow }) {
  if (device.state === "PENDING") return <>paired, but not seen yet</>;
  if (!device.lastSeenAt) return <>paired {formatTime(device.pairedAt)}</>;
  return (
    <>
      last seen <Age at={device.lastSeenAt} suffix=" ago" />
    </>
  );
}
