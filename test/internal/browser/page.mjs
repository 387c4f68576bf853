// What scripts that drive Chromium share. CURT_NPM is where scripts/npm put the packages.
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'

const installed = createRequire(process.env.CURT_NPM + '/')
export const { chromium } = installed('playwright-core')
const axe = readFileSync(installed.resolve('axe-core/axe.min.js'), 'utf8')

export const phone = { width: 375, height: 667 }
export const desk = { width: 1280, height: 800 }

const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

// listen makes a fault of whatever the browser complains about. That the page itself is
// a 404 is no complaint.
export function listen (page, where, faults) {
  page.on('dialog', d => {
    faults.push(`${where}: ${d.type() === 'beforeunload' ? 'it asked before it was left' : `a script ran: ${d.message()}`}`)
    return d.dismiss()
  })
  page.on('pageerror', e => faults.push(`${where}: ${e}`))
  page.on('requestfailed', r => {
    if (r.failure()?.errorText === 'net::ERR_ABORTED') return // the page was left before all of it was there
    faults.push(`${where}: ${r.url()} ${r.failure()?.errorText}`)
  })
  page.on('console', m => {
    if (m.text().startsWith('Failed to load resource') && m.location().url === page.url()) return
    faults.push(`${where}: console: ${m.text()} ${m.location().url}`)
  })
}

// settled waits until nothing fades or moves that is going to stop: what is half there has no
// contrast.
const settled = () => Promise.all(document.getAnimations()
  .filter(a => a.playState === 'running' && a.effect?.getComputedTiming().endTime !== Infinity)
  .map(a => a.finished.catch(() => {}))) // it was called off

// judge finds what keeps people from a page: faults of accessibility, a page that is
// wider than its window, the ground of the other scheme. It returns the title. only names
// the rules, where not all of them are asked.
export async function judge (page, where, scheme, faults, only = rules) {
  await page.evaluate(axe)
  await page.evaluate(settled)
  const seen = await page.evaluate(async tags => ({
    violations: (await globalThis.axe.run(document, { runOnly: tags, resultTypes: ['violations'] })).violations,
    title: document.title,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    ground: getComputedStyle(document.body).backgroundColor
  }), only)
  for (const v of seen.violations) {
    for (const n of v.nodes) faults.push(`${where}: ${v.id}: ${v.help}: ${n.html} ${n.failureSummary}`)
  }
  if (seen.wide > 0) faults.push(`${where}: ${seen.wide} pixels too wide`)
  const bright = seen.ground.match(/\d+/g).slice(0, 3).every(c => c > 127)
  if (bright !== (scheme === 'light')) faults.push(`${where}: the ground is ${seen.ground}`)
  return seen.title
}

// want says what a step must lead to.
export function want (what, got, wanted) {
  if (got !== wanted) throw new Error(`${what}: ${JSON.stringify(got)}, want ${JSON.stringify(wanted)}`)
}

// picture leaves a screenshot in a folder, where one is wanted.
export async function picture (page, folder, name, options = {}) {
  if (folder) await page.screenshot({ path: `${folder}/${name.replaceAll(/\W+/g, '-')}.png`, ...options })
}
