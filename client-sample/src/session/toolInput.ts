/** What a tool's call is, in words and in parts a person can judge. */
export interface ToolView {
  /** The one thing that tells the call from others: a command, a file, a pattern. */
  subject: string;
  edit: { path: string; before: string; after: string } | null;
  /** The whole input, laid out. */
  json: string;
}

const SUBJECT_KEYS = ["command", "file_path", "notebook_path", "path", "pattern", "url", "query", "description", "prompt"];

/** Reads a tool's input; any text is survived, and shown as it is. */
export function readToolInput(inputJson: string): ToolView {
  let input: unknown;
  try {
    input = JSON.parse(inputJson);
  } catch {
    return { subject: "", edit: null, json: inputJson };
  }
  const json = JSON.stringify(input, null, 2) ?? inputJson;
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    return { subject: "", edit: null, json };
  }
  const fields = input as Record<string, unknown>;
  const key = SUBJECT_KEYS.find((each) => typeof fields[each] === "string");
  return { subject: key ? String(fields[key]) : "", edit: readEdit(fields), json };
}

function readEdit(fields: Record<string, unknown>): ToolView["edit"] {
  const path = fields["file_path"];
  if (typeof path !== "string") return null;
  const { old_string: before, new_string: after, content, edits } = fields;
  if (typeof before === "string" && typeof after === "string") return { path, before, after };
  if (typeof content === "string") return { path, before: "", after: content };
  if (!Array.isArray(edits)) return null;
  const pairs = edits.filter((each) => typeof each?.old_string === "string" && typeof each?.new_string === "string");
  if (pairs.length === 0) return null;
  return {
    path,
    before: pairs.map((each) => each.old_string).join("\n"),
    after: pairs.map((each) => each.new_string).join("\n"),
  };
}
