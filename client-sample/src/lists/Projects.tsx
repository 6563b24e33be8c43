import { useState } from "preact/hooks";
import { ask, payload } from "../api/ask.ts";
import { graphql } from "../api/graphql.ts";
import { scopes } from "../login/scopes.ts";
import { Empty, Loading, Notice, PageHead } from "../ui/parts.tsx";
import { useAction } from "../ui/useAction.ts";
import { useQuery } from "./useQuery.ts";

const ProjectList = graphql(`
  query ProjectList { projects(first: 100) { nodes { id name path readOnly createdAt } } }
`);
const Register = graphql(`
  mutation Register($input: RegisterProjectInput!) {
    registerProject(input: $input) {
      __typename
      ... on RegisterProjectPayload { project { id } }
      ... on UserError { code message }
    }
  }
`);
const Update = graphql(`
  mutation Update($input: UpdateProjectInput!) {
    updateProject(input: $input) {
      __typename
      ... on UpdateProjectPayload { project { id } }
      ... on UserError { code message }
    }
  }
`);
const Remove = graphql(`
  mutation Remove($input: RemoveProjectInput!) {
    removeProject(input: $input) {
      __typename
      ... on RemoveProjectPayload { project { id } }
      ... on UserError { code message }
    }
  }
`);

/** The folders in which terminals may run. */
export function Projects(_: { id: string }) {
  const { data, failure, refresh } = useQuery(ProjectList, {});
  const projects = data?.projects.nodes;
  return (
    <div class="page">
      <PageHead title="Projects" />
      <p class="lead">Sessions in these folders can be resumed, and terminals started there.</p>
      {scopes.value.admin ? <AddForm onDone={refresh} /> : null}
      {failure ? <Notice tone="bad">{failure}</Notice> : null}
      {projects ? null : <Loading rows={2} />}
      {projects?.length === 0 ? <Empty title="No projects yet" /> : null}
      {projects?.length ? (
        <ul class="rows">
          {projects.map((project) => (
            <Project key={project.id} project={project} onDone={refresh} />
          ))}
        </ul>
      ) : null}
    </div>
  );
}

function AddForm({ onDone }: { onDone: () => void }) {
  const [path, setPath] = useState("");
  const [readOnly, setReadOnly] = useState(false);
  const add = useAction(async () => {
    const { registerProject } = await ask(Register, { input: { path: path.trim(), readOnly } });
    payload(registerProject, "RegisterProjectPayload");
    setPath("");
    onDone();
  });
  return (
    <form
      class="inline-form card"
      onSubmit={(event) => {
        event.preventDefault();
        void add.run();
      }}
    >
      <label class="wide">
        Folder
        <input
          value={path}
          placeholder="/home/you/code/project"
          autoComplete="off"
          autoCapitalize="off"
          spellcheck={false}
          onInput={(event) => setPath(event.currentTarget.value)}
        />
      </label>
      <label class="check-field">
        <input type="checkbox" checked={readOnly} onChange={(event) => setReadOnly(event.currentTarget.checked)} />
        Read-only
      </label>
      <button type="submit" class="primary" disabled={add.isBusy || !path.trim()}>
        Add
      </button>
      {add.failure ? <Notice tone="bad">{add.failure}</Notice> : null}
    </form>
  );
}

interface ProjectProps {
  project: { id: string; name: string; path: string | null; readOnly: boolean };
  onDone: () => void;
}

function Project({ project, onDone }: ProjectProps) {
  const remove = useAction(async () => {
    if (!confirm(`Forget the project ${project.name}? Its folder stays as it is.`)) return;
    const { removeProject } = await ask(Remove, { input: { projectId: project.id } });
    payload(removeProject, "RemoveProjectPayload");
    onDone();
  });
  const protect = useAction(async () => {
    const input = { projectId: project.id, readOnly: !project.readOnly };
    payload((await ask(Update, { input })).updateProject, "UpdateProjectPayload");
    onDone();
  });
  const failure = remove.failure ?? protect.failure;
  return (
    <li class="row row-flat">
      <div class="row-main">
        <span class="row-name" dir="auto">
          {project.name}
        </span>
        <span class="path muted">{project.path}</span>
        {failure ? <Notice tone="bad">{failure}</Notice> : null}
      </div>
      {scopes.value.admin ? (
        <div class="row-actions">
          <label class="check-field">
            <input type="checkbox" checked={project.readOnly} disabled={protect.isBusy} onChange={protect.run} />
            Read-only
          </label>
          <button type="button" class="quiet" disabled={remove.isBusy} onClick={remove.run}>
            Remove
          </button>
        </div>
      ) : null}
    </li>
  );
}
