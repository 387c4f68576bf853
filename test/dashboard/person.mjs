// Somebody who uses the dashboard, and what everybody does there.
import { chromium, desk, judge, listen, phone, picture, want } from '../internal/browser/page.mjs'

const patience = 180000 // milliseconds until a step has failed

export const lightPhone = { scheme: 'light', name: 'phone', size: phone }
export const darkDesk = { scheme: 'dark', name: 'desk', size: desk }
export const lightDesk = { scheme: 'light', name: 'desk', size: desk }
export const darkPhone = { scheme: 'dark', name: 'phone', size: phone }

export const rows = page => page.locator('.body .row')
export const notice = (page, text) => page.locator('.shelf').getByText(text).waitFor()
export const search = page => page.getByRole('searchbox')
export const cells = (page, at) => rows(page).nth(at).innerText()

// asked returns what kind of question a step has the browser ask; listen says no to it, and
// notes it.
export async function asked (page, step) {
  const [question] = await Promise.all([page.waitForEvent('dialog'), step()])
  return question.type()
}

// paste does what a person's paste does, without the clipboard of the machine.
export const paste = (page, text) => page.evaluate(text => {
  const data = new DataTransfer()
  data.setData('text/plain', text)
  document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
}, text)

// stage starts the browser, and returns what the screens' files need: person has somebody
// take steps, and notes in found what came of them.
export async function stage (plan) {
  const found = { faults: [], done: [], figures: [], tried: 0 }
  const browser = await chromium.launch({ executablePath: plan.program, timeout: patience })

  // person opens the dashboard in a window of its own and takes steps there.
  async function person (name, way, steps) {
    found.tried++
    const context = await browser.newContext({ colorScheme: way.scheme, viewport: way.size, locale: way.locale, timezoneId: way.zone, permissions: ['clipboard-read', 'clipboard-write'] })
    context.setDefaultTimeout(patience) // of further pages, too
    const page = await context.newPage()
    const heard = []
    listen(page, name, heard)
    const look = async (what, options) => {
      const where = `${what}, ${way.scheme}, ${way.name}`
      await judge(page, where, way.scheme, found.faults)
      await picture(page, plan.pictures, where, options)
    }
    // both looks in both themes, and waits for no colour that is on its way.
    look.both = async (what, options) => {
      for (const scheme of ['dark', 'light']) {
        await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
        const where = `${what}, ${scheme}, ${way.name}`
        await judge(page, where, scheme, found.faults, scheme === 'dark' ? ['color-contrast'] : undefined) // all else is the same in both
        await picture(page, plan.pictures, where, options)
      }
      await page.emulateMedia({ colorScheme: way.scheme, reducedMotion: null })
    }
    const began = Date.now()
    try {
      await page.goto(plan.base + (way.path ?? '/app/'))
      await steps(page, look, context)
      found.done.push(name)
      found.figures.push(`${name}: ${((Date.now() - began) / 1000).toFixed(1)} s`)
    } catch (e) {
      found.faults.push(`${name}: ${e}`)
      await picture(page, plan.pictures, 'failed ' + name)
    }
    // What a step provokes, the browser notes in the console; nothing else may stand there.
    found.faults.push(...heard.filter(f => !(way.provokes ?? []).some(p => f.includes(p))))
    await context.close()
  }

  // enter shows the key; what follows waits for what its screen shows.
  async function enter (page, key = plan.key) {
    await page.getByLabel('API key').fill(key)
    await page.keyboard.press('Enter')
  }

  async function signIn (page) {
    await enter(page)
    await page.getByRole('heading', { name: 'Links' }).waitFor()
    await rows(page).first().waitFor()
  }

  // ask asks the API without the dashboard.
  async function ask (path, init = {}) {
    const a = await fetch(plan.base + path, { ...init, headers: { Authorization: 'Bearer ' + plan.key, 'Content-Type': 'application/json', ...init.headers } })
    want(`${init.method ?? 'GET'} ${path}`, a.ok, true)
    return a.status === 204 ? undefined : a.json()
  }

  return { plan, found, person, enter, signIn, ask, end: () => browser.close() }
}
