// Reads from standard input what to look at, drives Chromium, and writes what it found:
// {"faults": […], "looked": how many pages were judged, "done": […]}. web_test.go says
// what stands in both. CURT_NPM is where scripts/npm put the packages.
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'

const installed = createRequire(process.env.CURT_NPM + '/')
const { chromium } = installed('playwright-core')
const axe = readFileSync(installed.resolve('axe-core/axe.min.js'), 'utf8')

const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
const phone = { width: 375, height: 667 }
const desk = { width: 1280, height: 800 }

const plan = JSON.parse(readFileSync(0, 'utf8'))
const found = { faults: [], looked: 0, done: [] }
// example.com is a server of the test.
const browser = await chromium.launch({ executablePath: plan.program, args: [`--host-resolver-rules=MAP example.com ${plan.elsewhere}`] })

// listen makes a fault of whatever the browser complains about. That the page itself is
// a 404 is no complaint.
function listen (page, where) {
  page.on('dialog', d => { found.faults.push(`${where}: a script ran: ${d.message()}`); return d.dismiss() })
  page.on('pageerror', e => found.faults.push(`${where}: ${e}`))
  page.on('requestfailed', r => {
    if (r.failure()?.errorText === 'net::ERR_ABORTED') return // the page was left before all of it was there
    found.faults.push(`${where}: ${r.url()} ${r.failure()?.errorText}`)
  })
  page.on('console', m => {
    if (m.text().startsWith('Failed to load resource') && m.location().url === page.url()) return
    found.faults.push(`${where}: console: ${m.text()} ${m.location().url}`)
  })
}

// look judges one page in one light and size.
async function look (context, p, where, scheme) {
  const page = await context.newPage()
  listen(page, where)
  await page.goto(p.url)
  if (p.fill) {
    for (const [id, value] of Object.entries(p.fill)) {
      const at = page.locator('#' + id)
      if (await at.evaluate(e => e.tagName) === 'SELECT') await at.selectOption(value)
      else await at.fill(value)
    }
    await Promise.all([page.waitForEvent('load'), page.press('#' + Object.keys(p.fill)[0], 'Enter')])
  }
  await page.evaluate(axe)
  const seen = await page.evaluate(async tags => ({
    violations: (await globalThis.axe.run(document, { runOnly: tags, resultTypes: ['violations'] })).violations,
    title: document.title,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    ground: getComputedStyle(document.body).backgroundColor
  }), rules)
  for (const v of seen.violations) {
    for (const n of v.nodes) found.faults.push(`${where}: ${v.id}: ${v.help}: ${n.html} ${n.failureSummary}`)
  }
  if (p.title && !seen.title.includes(p.title)) found.faults.push(`${where}: the title is ${seen.title}`)
  if (seen.wide > 0) found.faults.push(`${where}: ${seen.wide} pixels too wide`)
  const bright = seen.ground.match(/\d+/g).slice(0, 3).every(c => c > 127)
  if (bright !== (scheme === 'light')) found.faults.push(`${where}: the ground is ${seen.ground}`)
  if (plan.pictures) await page.screenshot({ path: `${plan.pictures}/${where.replaceAll(/\W+/g, '-')}.png`, fullPage: true })
  found.looked++
  await page.close()
}

const ways = [['light', 'phone', phone], ['dark', 'desk', desk]]
if (plan.all) ways.push(['light', 'desk', desk], ['dark', 'phone', phone])
for (const [scheme, name, viewport] of ways) {
  const context = await browser.newContext({ colorScheme: scheme, viewport })
  if (plan.cookie) await context.addCookies([plan.cookie])
  for (const p of plan.looks) await look(context, p, `${p.name}, ${scheme}, ${name}`, scheme)
  await context.close()
}

// A person has a keyboard and no scripts. want says what a step must lead to.
function want (what, got, wanted) {
  if (got !== wanted) throw new Error(`${what}: ${JSON.stringify(got)}, want ${JSON.stringify(wanted)}`)
}

async function person (name, steps) {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: phone })
  const page = await context.newPage()
  listen(page, name)
  page.setDefaultTimeout(10000)
  const keys = {
    page,
    focused: () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent),
    ring: () => page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle),
    press: async (...list) => { for (const k of list) await page.keyboard.press(k) },
    type: text => page.keyboard.type(text),
    leads: async key => { await Promise.all([page.waitForEvent('load'), page.keyboard.press(key)]) }
  }
  try {
    await steps(keys)
    found.done.push(name)
  } catch (e) {
    found.faults.push(`${name}: ${e}`)
  }
  await context.close()
}

if (plan.form) {
  const f = plan.form
  await person('makes a link', async k => {
    await k.page.goto(f.url)
    await k.press('Tab')
    want('the first field', await k.focused(), 'url')
    want('what is in focus is seen', await k.ring(), 'solid')
    await k.type(f.long)
    await k.press('Tab')
    want('the second field', await k.focused(), 'alias')
    await k.type(f.taken)
    await k.press('Tab', 'ArrowDown', 'Tab')
    want('the button', await k.focused(), 'Shorten')
    want('what is in focus is seen', await k.ring(), 'solid')
    await k.leads('Enter')
    want('the field with the mistake', await k.focused(), 'alias')
    want('what was typed', await k.page.inputValue('#url'), f.long)
    want('what was chosen', await k.page.inputValue('#expiry'), '3600')
    await k.press('Control+A')
    await k.type(f.alias)
    await k.leads('Enter')
    want('the field to copy', await k.focused(), 'short')
    want('the short link', await k.page.inputValue('#short'), f.short)
    await k.press('Tab')
    want('the next link', await k.focused(), 'QR code as an image to print')
  })
  await person('looks before following', async k => {
    await k.page.goto(f.short + '+')
    await k.press('Tab')
    want('the link', await k.focused(), 'Follow the link')
    await k.leads('Enter')
    want('the destination', k.page.url(), f.long)
    want('what is there', await k.page.textContent('body'), 'arrived')
  })
}

if (plan.statistics) {
  const s = plan.statistics
  await person('reads statistics', async k => {
    await k.page.goto(s.url)
    await k.press('Tab')
    want('the field', await k.focused(), 'key')
    await k.type('curt_' + 'x'.repeat(30))
    await k.leads('Enter')
    want('the field again', await k.focused(), 'key')
    await k.type(s.key)
    await k.leads('Enter')
    want('the address', k.page.url(), s.url)
    await k.press('Tab', 'Tab')
    want('the part of time', await k.focused(), '48 hours')
    await k.leads('Enter')
    want('the address', k.page.url(), s.url + '?range=48h')
    await k.press('Tab', 'Tab', 'Tab', 'Tab')
    want('the table', await k.focused(), 'The same as a table')
    await k.press('Enter')
    want('the table is open', await k.page.locator('details').evaluate(d => d.open), true)
    await k.press('Tab')
    want('the way out', await k.focused(), 'Show them no longer')
    await k.leads('Enter')
    want('the field once more', await k.page.locator('#key').count(), 1)
  })
}

await browser.close()
process.stdout.write(JSON.stringify(found))
