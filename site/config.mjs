// The site of the documentation: what it shows in which order. Every page is listed here, and a
// page that is not ends the build. scripts/site copies this file and the pages into one folder.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const pages = join(import.meta.dirname, '..')
const title = file => /^# (.+)$/m.exec(readFileSync(join(pages, file), 'utf8'))[1]
const entry = (file, text = title(file)) => ({ text, link: '/' + file.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, ''), file })

const internals = ['redirects', 'caching', 'creates', 'moderation', 'clicks', 'kafka', 'background', 'packages', 'mutants']
const decisions = readdirSync(join(pages, 'decisions')).filter(name => /^\d/.test(name)).sort()

const sidebar = [
  { text: 'Start', items: [entry('index.md', 'Overview'), entry('tutorial.md', 'Tutorial')] },
  { text: 'Use', items: [entry('cli.md', 'Command line'), entry('api.md', 'API'), entry('clients.md', 'Clients'), entry('permissions.md')] },
  {
    text: 'Operate',
    items: [
      entry('operations.md', 'Operations'), entry('configuration.md'), entry('backends.md', 'Storage backends'), entry('kubernetes.md', 'Kubernetes'), entry('fleet.md'),
      entry('capacity.md'), entry('failures.md', 'Failures'), entry('articles.md', 'Published designs'), entry('privacy.md', 'Privacy'), entry('SECURITY.md', 'Security'), entry('CHANGELOG.md'),
    ],
  },
  {
    text: 'Understand',
    items: [
      entry('ARCHITECTURE.md'), entry('glossary.md'), entry('CONTRIBUTING.md'),
      { ...entry('internals/index.md', 'Internals'), collapsed: true, items: internals.map(name => entry(`internals/${name}.md`)) },
      { ...entry('decisions/index.md', 'Decisions'), collapsed: true, items: decisions.map(name => entry('decisions/' + name)) },
    ],
  },
]

const listed = new Set()
const list = items => { for (const item of items) { if (item.file) listed.add(item.file); if (item.items) list(item.items) } }
list(sidebar)
const missing = readdirSync(pages, { recursive: true })
  .filter(file => file.endsWith('.md') && !file.startsWith('.vitepress') && !listed.has(file))
if (missing.length > 0) throw new Error(`not listed in site/config.mjs: ${missing.join(', ')}`)

export default {
  title: 'curt',
  description: 'A self-hosted URL shortener in one static binary',
  lang: 'en',
  cleanUrls: false,
  lastUpdated: false,
  ignoreDeadLinks: [/^https?:\/\/localhost/], // addresses of the reader's own server
  markdown: { html: true },
  themeConfig: {
    search: { provider: 'local' }, // an index in the pages: nothing is asked elsewhere
    sidebar,
    outline: [2, 3],
    nav: [{ text: 'Tutorial', link: '/tutorial' }, { text: 'Operations', link: '/operations' }, { text: 'Architecture', link: '/ARCHITECTURE' }],
  },
}
