import { useState } from "preact/hooks";
import { addressOf } from "../router.ts";
import { Icon } from "../ui/Icon.tsx";
import { Empty, Loading, Notice, PageHead } from "../ui/parts.tsx";
import { type Group, groupRows, isMatch, searchWords } from "./groups.ts";
import { Row } from "./Row.tsx";
import type { SessionRow } from "./rows.ts";
import { sessionsView } from "./sessions.ts";

/** Ended sessions are many; these are shown at first. */
const ENDED_AT_FIRST = 20;

/** Every session of the machine, by what it needs. */
export function Board() {
  const [search, setSearch] = useState("");
  const [project, setProject] = useState("");
  const view = sessionsView();
  const all = [...view.rows.values()];
  const words = searchWords(search);
  const rows = all.filter((row) => (!project || row.project?.id === project) && isMatch(row, words));
  return (
    <div class="page">
      <PageHead title="Sessions">
        <Filters rows={all} search={search} setSearch={setSearch} project={project} setProject={setProject} />
      </PageHead>
      {view.ended ? <Notice tone="bad">{view.ended}</Notice> : null}
      {view.isComplete ? <Groups all={all} rows={rows} /> : <Loading />}
    </div>
  );
}

interface FilterProps {
  rows: SessionRow[];
  search: string;
  setSearch: (text: string) => void;
  project: string;
  setProject: (id: string) => void;
}

function Filters({ rows, search, setSearch, project, setProject }: FilterProps) {
  const projects = new Map(rows.flatMap((row) => (row.project ? [[row.project.id, row.project.name]] : [])));
  return (
    <div class="filters" role="search">
      <label class="field-icon">
        <span class="hidden">Search sessions</span>
        <Icon name="search" size={18} />
        <input type="search" placeholder="Search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
      </label>
      {projects.size > 0 ? (
        <label>
          <span class="hidden">Project</span>
          <select value={project} onChange={(event) => setProject(event.currentTarget.value)}>
            <option value="">All projects</option>
            {[...projects].map(([id, name]) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      ) : null}
    </div>
  );
}

function Groups({ all, rows }: { all: SessionRow[]; rows: SessionRow[] }) {
  if (all.length === 0) {
    return (
      <Empty title="No sessions yet">
        <p>
          Start an agent in any terminal of this machine and say something: it shows here by itself. To resume sessions
          from here, add their folder under <a href={addressOf("projects")}>Projects</a>.
        </p>
      </Empty>
    );
  }
  if (rows.length === 0) {
    return (
      <Empty title="Nothing matches">
        <p>None of the {all.length} sessions has these words or is in this project.</p>
      </Empty>
    );
  }
  return (
    <>
      {groupRows(rows).map((group) => (
        <GroupList key={group.id} group={group} />
      ))}
    </>
  );
}

function GroupList({ group }: { group: Group }) {
  const [isWhole, setWhole] = useState(group.id !== "ended");
  const shown = isWhole ? group.rows : group.rows.slice(0, ENDED_AT_FIRST);
  const hidden = group.rows.length - shown.length;
  return (
    <section class="group" aria-labelledby={`group-${group.id}`}>
      <h2 id={`group-${group.id}`} class={`group-title group-${group.id}`}>
        {group.title} <span class="count">{group.rows.length}</span>
      </h2>
      <ul class="rows">
        {shown.map((row) => (
          <Row key={row.id} row={row} />
        ))}
      </ul>
      {hidden > 0 ? (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          Show {hidden} more
        </button>
      ) : null}
    </section>
  );
}
