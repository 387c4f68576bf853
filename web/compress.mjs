// Puts what Vite built into internal/web/dist, where the server embeds it: each file as
// it is and, where that is smaller, compressed by Brotli and gzip. Says what a browser
// loads first, and fails when that is more than it may be.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const from = join(import.meta.dirname, 'build')
const into = join(import.meta.dirname, '..', 'internal', 'web', 'dist')
const most = 200 * 1024 // of gzip, for the first load

// .keep stays: it is what the server embeds where nothing was built.
for (const name of readdirSync(into)) if (name !== '.keep') rmSync(join(into, name), { recursive: true })

const gzipped = {}
for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue
  const path = join(entry.parentPath, entry.name)
  const name = relative(from, path).replaceAll('\\', '/')
  const bytes = readFileSync(path)
  const target = join(into, name)
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, bytes)
  const made = {
    '.br': brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }),
    '.gz': gzipSync(bytes, { level: 9 })
  }
  for (const [ending, small] of Object.entries(made)) if (small.length < bytes.length) writeFileSync(target + ending, small)
  gzipped[name] = Math.min(made['.gz'].length, bytes.length)
}

const page = readFileSync(join(from, 'index.html'), 'utf8')
const first = ['index.html', ...[...page.matchAll(/(?:src|href)="\/app\/([^"]+)"/g)].map(m => m[1])]
const total = first.reduce((sum, name) => sum + gzipped[name], 0)
console.log(`dashboard: the first load is ${(total / 1024).toFixed(1)} KB of gzip, in ${first.length} files`)
if (!(total <= most)) {
  console.error(`dashboard: more than ${most / 1024} KB: ${first.map(name => `${name} ${gzipped[name]}`).join(', ')}`)
  process.exit(1)
}
