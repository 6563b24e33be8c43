// Compresses what was built, so that the server only has to pick: .br and .gz beside
// each text file that gets smaller.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const COMPRESSED = new Set([".css", ".html", ".js", ".svg", ".ttf", ".webmanifest"]);
// Above this quality brotli takes minutes for Monaco and saves a percent.
const QUALITY_LARGE = 9;
const LARGE_BYTES = 500_000;

const folder = join(import.meta.dirname, "dist");
for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !COMPRESSED.has(extname(entry.name))) continue;
  const path = join(entry.parentPath, entry.name);
  const bytes = readFileSync(path);
  const quality = bytes.length > LARGE_BYTES ? QUALITY_LARGE : 11;
  const brotli = brotliCompressSync(bytes, {
    params: { [constants.BROTLI_PARAM_QUALITY]: quality },
  });
  if (brotli.length < bytes.length) writeFileSync(`${path}.br`, brotli);
  const gzip = gzipSync(bytes, { level: 9 });
  if (gzip.length < bytes.length) writeFileSync(`${path}.gz`, gzip);
}
