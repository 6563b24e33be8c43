import { graphql } from "../api/graphql.ts";
import { useQuery } from "../lists/useQuery.ts";
import { scopes } from "../login/scopes.ts";
import { identity } from "../keys/identity.ts";
import { forgetTabToken } from "../login/token.ts";
import { addressOf } from "../router.ts";
import { serverUrl } from "../ui/base.ts";
import { Icon } from "../ui/Icon.tsx";
import { Loading, Notice, PageHead } from "../ui/parts.tsx";
import { entries } from "../ui/Shell.tsx";
import { CLIENT_VERSION } from "../version.ts";

const ServerInfo = graphql(`
  query ServerInfo {
    server {
      version schemaVersion urls
      host { name }
      health { status notes }
    }
  }
`);

/** This client, this login, this server. */
export function Settings(_: { id: string }) {
  const { data, failure } = useQuery(ServerInfo, {});
  const server = data?.server;
  return (
    <div class="page">
      <PageHead title="Settings" />
      {failure ? <Notice tone="bad">{failure}</Notice> : null}
      <ul class="rows only-phone">
        {entries()
          .filter((entry) => !entry.isMain)
          .map((entry) => (
            <li key={entry.page} class="row">
              <a class="row-link" href={addressOf(entry.page)}>
                <Icon name={entry.icon} /> {entry.label}
              </a>
            </li>
          ))}
      </ul>
      <section class="card">
        <h2>This server</h2>
        {server ? (
          <>
            <dl class="session-facts">
              <div>
                <dt>Machine</dt>
                <dd>{server.host.name}</dd>
              </div>
              <div>
                <dt>Version</dt>
                <dd>
                  {server.version}, schema {server.schemaVersion}, this page {CLIENT_VERSION}
                </dd>
              </div>
              <div>
                <dt>Addresses</dt>
                <dd>{server.urls.join(", ")}</dd>
              </div>
              <div>
                <dt>Health</dt>
                <dd>{server.health.status === "OK" ? "Everything works" : "Something needs attention"}</dd>
              </div>
            </dl>
            {server.health.notes.map((note) => (
              <Notice key={note}>{note}</Notice>
            ))}
          </>
        ) : (
          <Loading rows={3} />
        )}
      </section>
      {isSecureContext ? null : <InsecureNotice />}
      <section class="card">
        <h2>For app builders</h2>
        <p>
          <a href={serverUrl("graphql")}>GraphiQL</a> shows every type and field, with examples to run.
        </p>
      </section>
      <ThisLogin />
    </div>
  );
}

function ThisLogin() {
  const { read, terminal, answer, admin } = scopes.value;
  const words = [
    "see states and names",
    read ? "read texts" : "",
    terminal ? "use terminals" : "",
    answer ? "answer agents" : "",
    admin ? "manage projects, devices and the audit log" : "",
  ].filter(Boolean);
  return (
    <section class="card">
      <h2>This login</h2>
      <p>It may {words.join(", ")}.</p>
      {identity.value ? (
        <p class="muted">This browser is paired. To end that, revoke it under Devices.</p>
      ) : (
        <>
          <p class="muted">
            It ends with this tab. <a href={addressOf("pair")}>Pair this browser</a> to stay logged in and to answer
            agents from here.
          </p>
          <button type="button" onClick={forgetTabToken}>
            Log out
          </button>
        </>
      )}
    </section>
  );
}

function InsecureNotice() {
  return (
    <Notice>
      This address is plain http, so this browser can neither pair, nor answer, nor be notified. Put a TLS proxy or a
      tunnel before Sidestage, name its address in <code>public_urls</code>, and open that one.
    </Notice>
  );
}
