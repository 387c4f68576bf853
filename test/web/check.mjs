// Reads from standard input what to look at, drives Chromium, and writes what it found:
// {"faults": […], "looked": how many pages were judged, "done": […]}. web_test.go says
// what stands in both.
import { readFileSync } from 'node:fs'
import { chromium, desk, judge, listen, phone, picture, want } from '../internal/browser/page.mjs'

const plan = JSON.parse(readFileSync(0, 'utf8'))
const found = { faults: [], looked: 0, done: [] }
// example.com is a server of the test.
const patience = 180_000 // milliseconds until a step has failed
const browser = await chromium.launch({ executablePath: plan.program, timeout: patience, args: [`--host-resolver-rules=MAP example.com ${plan.elsewhere}`] })

// look judges one page in one light and size.
async function look (context, p, where, scheme) {
  const page = await context.newPage()
  listen(page, where, found.faults)
  await page.goto(p.url)
  if (p.fill) {
    for (const [id, value] of Object.entries(p.fill)) {
      const at = page.locator('#' + id)
      if (await at.evaluate(e => e.tagName) === 'SELECT') await at.selectOption(value)
      else await at.fill(value)
    }
    await Promise.all([page.waitForEvent('load'), page.locator('form input').first().press('Enter')])
  }
  const title = await judge(page, where, scheme, found.faults)
  if (p.title && !title.includes(p.title)) found.faults.push(`${where}: the title is ${title}`)
  await picture(page, plan.pictures, where, { fullPage: true })
  found.looked++
  await page.close()
}

const ways = [['light', 'phone', phone], ['dark', 'desk', desk]]
if (plan.all) ways.push(['light', 'desk', desk], ['dark', 'phone', phone])
for (const [scheme, name, viewport] of ways) {
  const context = await browser.newContext({ colorScheme: scheme, viewport })
  context.setDefaultTimeout(patience)
  if (plan.cookie) await context.addCookies([plan.cookie])
  for (const p of plan.looks) await look(context, p, `${p.name}, ${scheme}, ${name}`, scheme)
  await context.close()
}

// A person has a keyboard and no scripts.
async function person (name, steps) {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: phone })
  const page = await context.newPage()
  listen(page, name, found.faults)
  page.setDefaultTimeout(patience)
  const keys = {
    page,
    focused: () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent),
    ring: () => page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle),
    press: async (...list) => { for (const k of list) await page.keyboard.press(k) },
    type: text => page.keyboard.type(text),
    // What has autofocus gets it with a frame after the page is loaded.
    leads: async key => {
      await Promise.all([page.waitForEvent('load'), page.keyboard.press(key)])
      const waits = () => document.querySelector('[autofocus]') !== null && document.activeElement === document.body
      for (let n = 0; n < 7200 && await page.evaluate(waits); n++) await new Promise(done => setTimeout(done, 25))
    }
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
    want('the next link', await k.focused(), 'Download QR code')
  })
  await person('looks before following', async k => {
    await k.page.goto(f.short + '+')
    await k.press('Tab')
    want('the link', await k.focused(), 'Continue to site')
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
    want('the table', await k.focused(), 'View as table')
    await k.press('Enter')
    want('the table is open', await k.page.locator('details').evaluate(d => d.open), true)
    await k.press('Tab')
    want('the way out', await k.focused(), 'Sign out')
    await k.leads('Enter')
    want('the field once more', await k.page.locator('#key').count(), 1)
  })
}

await browser.close()
process.stdout.write(JSON.stringify(found))
