// People whose day is not like ours: the server answers late, or asks to be left alone;
// somebody works in two windows; it is another hour, in other digits.
import { want } from '../internal/browser/page.mjs'
import { darkPhone, lightDesk, lightPhone, notice, rows, search } from './person.mjs'

const list = '**/api/v1/links?*' // what the list asks, and nothing else does
const refusal = (status, title, wait) => ({
  status, contentType: 'application/problem+json', headers: wait ? { 'Retry-After': String(wait) } : {}, body: JSON.stringify({ type: '/problems/x', title, status })
})

// hold has a page wait for answers until what it returns is called: with a refusal, or
// with nothing, which lets the questions pass. Those that come later pass. A refusal waits for
// a question: a page may show what it asks for before the question is out.
async function hold (page, pattern, method) {
  let release, take
  const taken = new Promise(resolve => { take = resolve })
  let over = false
  const released = new Promise(resolve => { release = resolve })
  await page.route(pattern, async (route, request) => {
    if (over || request.method() !== method) return route.fallback()
    take()
    const answer = await released
    await (answer ? route.fulfill(answer) : route.fallback()).catch(() => {}) // the page may have dropped the question
  })
  return async answer => {
    if (answer) await taken
    over = true
    release(answer)
  }
}

// shows notes how long after a press the page is as it should be: both are of the page, so
// that what drives it takes no part.
async function shows (page, button, is) {
  await page.evaluate(`globalThis.shown = new Promise(resolve => addEventListener('click', () => {
    const began = performance.now()
    const look = () => ${is} ? requestAnimationFrame(() => resolve(performance.now() - began)) : setTimeout(look)
    look()
  }, { capture: true, once: true })); undefined`)
  await button.click()
  return page.evaluate(() => globalThis.shown)
}

export async function adverse ({ plan, found, person, enter, signIn, ask }) {
  const make = (code, more) => ask('/api/v1/links', { method: 'POST', body: JSON.stringify({ long_url: 'https://example.com/' + code, custom_alias: code, ...more }) })

  await person('is asked to wait', { ...lightPhone, provokes: ['429'] }, async (page, look) => {
    await page.route('**/api/v1/keys/self', route => route.fulfill(refusal(429, 'Too many requests', 30)))
    await enter(page)
    await page.getByText('Try again in 30 seconds.').waitFor()
    await page.unroute('**/api/v1/keys/self')
    await signIn(page)
    await page.route('**/api/v1/links', route => route.fulfill(refusal(429, 'Too many requests', 3600)))
    await page.getByRole('button', { name: 'New link' }).click()
    await page.getByLabel('Destination').fill('https://example.com/too-many')
    await page.getByRole('button', { name: 'Create link' }).click()
    await page.getByText('Too many requests. Try again in 60 minutes.').waitFor()
    want('what was typed', await page.getByLabel('Destination').inputValue(), 'https://example.com/too-many')
    await look('too many', { fullPage: false })
    await page.keyboard.press('Escape')
    await page.route(list, route => route.fulfill(refusal(429, 'Too many requests')))
    await search(page).fill('campaign')
    await page.getByText('Too many requests. Try again later.').waitFor()
    await page.unroute(list)
    await page.getByRole('button', { name: 'Try again' }).click()
    await rows(page).first().waitFor()
  })

  await make('slow-link', { title: 'Tardigrade' }) // longer than any code that is drawn
  await person('waits for a slow server', { ...lightDesk, provokes: ['503'] }, async (page, look) => {
    let go = await hold(page, '**/api/v1/keys/self', 'GET')
    const arrive = await hold(page, list, 'GET')
    let lists = 0
    page.on('request', r => { if (r.url().includes('/api/v1/links?')) lists++ })
    const ahead = page.waitForRequest(r => r.url().includes('/api/v1/links?'))
    await enter(page)
    await ahead // before the key was answered
    await page.getByRole('button', { name: 'Signing in…' }).waitFor()
    go()
    await page.getByRole('heading', { name: 'Links' }).waitFor()
    await page.locator('.ghosts').waitFor()
    want('the list was asked for once', lists, 1)
    arrive()
    await rows(page).first().waitFor()

    go = await hold(page, list, 'GET')
    await search(page).fill('tardigrade')
    await page.getByRole('status').getByText('Loading').waitFor()
    await look('slow')
    want('what was there stays', await rows(page).count() > 1, true)
    go()
    await page.waitForFunction(() => document.querySelectorAll('.body .row').length === 1)

    const row = rows(page).first()
    await row.locator('.open').click()
    go = await hold(page, '**/api/v1/links/slow-link*', 'PATCH')
    const off = await shows(page, page.getByRole('button', { name: 'Disable' }), 'document.querySelector(".body .row .state").innerText === "Disabled"')
    await go(refusal(503, 'Unavailable'))
    await notice(page, 'Couldn’t complete')
    await row.getByText('Live', { exact: true }).waitFor()
    await row.locator('.open').click()
    go = await hold(page, '**/api/v1/links/slow-link*', 'DELETE')
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    const gone = await shows(page, page.getByRole('button', { name: 'Delete permanently' }), '!document.querySelector(".body .row")')
    await go(refusal(503, 'Unavailable'))
    await row.getByText('slow-link', { exact: true }).waitFor()
    found.figures.push(`without an answer yet, turning off shows after ${off.toFixed(0)} ms, deleting after ${gone.toFixed(0)} ms`)
  })

  for (const code of ['two-one', 'two-two']) await make(code)
  await person('works in two windows', { ...lightDesk, provokes: ['404'] }, async (page, look, context) => {
    const at = (p, code) => rows(p).filter({ hasText: code })
    const other = await context.newPage()
    await other.goto(plan.base + '/app/')
    await signIn(other)
    await signIn(page)
    await at(page, 'two-two').locator('.open').click()
    await page.getByAltText('QR code').waitFor()
    await at(other, 'two-one').locator('.open').click()
    await other.getByRole('button', { name: 'Disable' }).click()
    await at(page, 'two-one').getByText('Disabled', { exact: true }).waitFor()
    await at(other, 'two-two').locator('.open').click()
    await other.getByRole('button', { name: 'Delete', exact: true }).click()
    await other.getByRole('button', { name: 'Delete permanently' }).click()
    await at(page, 'two-two').waitFor({ state: 'detached' })
    await page.getByLabel('Title').fill('Too late')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('It no longer exists.').waitFor()
    await other.getByRole('button', { name: 'Sign out' }).click()
    await other.getByLabel('API key').waitFor()
    await page.keyboard.press('Escape')
    await make('two-three')
    await at(page, 'two-three').waitFor() // whose key is its own
  })

  // The days around the last change of clocks, by hours and by days: none is lost, none is
  // counted twice. India has no such change, and is half an hour off.
  for (const way of [
    { ...lightDesk, locale: 'de-DE', zone: 'Asia/Kolkata', digits: /^\d{1,3}(\.\d{3})+$/ },
    { ...darkPhone, locale: 'fr-FR', zone: 'America/St_Johns', digits: /^\d{1,3}(\s\d{3})+$/ },
    { ...lightDesk, locale: 'ar-EG', zone: 'Africa/Cairo', digits: /^[٠-٩]{1,3}(٬[٠-٩]{3})+$/ }
  ]) {
    await person(`is in ${way.zone} and reads ${way.locale}`, { ...way, path: '/app/clicks' }, async (page, look) => {
      await enter(page)
      await page.waitForFunction(() => /\p{Nd}.*\p{Nd}/u.test(document.querySelector('main output')?.textContent))
      want('the number', way.digits.test(await page.locator('main output').innerText()), true)
      want('its noun', /^total clicks/.test((await page.locator('main .count .small').innerText()).trim()), true)
      await page.locator('.drawing path.people').first().waitFor({ state: 'attached' })
      if (way.locale === 'ar-EG') await look('all clicks in Egypt', { fullPage: true })
      const { from, to, hours } = await page.evaluate(() => {
        const day = n => { const d = new Date(); return new Date(d.getFullYear(), d.getMonth(), d.getDate() - n) }
        const name = d => [d.getFullYear(), String(d.getMonth() + 1).padStart(2, '0'), String(d.getDate()).padStart(2, '0')].join('-')
        let n = 2
        while (n < 80 && day(n).getTimezoneOffset() === day(n - 1).getTimezoneOffset()) n++ // clicks are of 90 days
        return { from: name(day(n + 2)), to: name(day(n - 1)), hours: (day(n - 2) - day(n + 2)) / 3600e3 }
      })
      const counts = {}
      for (const interval of ['hour', 'day']) {
        await page.evaluate(to => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')) }, `/app/clicks?range=custom&from=${from}&to=${to}&interval=${interval}&before=off`)
        await page.waitForFunction(n => document.querySelectorAll('section[aria-busy=false] details').length === 1 && (document.querySelector('details').open = true) && document.querySelectorAll('details tbody tr').length === n, interval === 'hour' ? hours : 4)
        counts[interval] = await page.evaluate(() => {
          const digits = s => Number([...s].filter(c => /\p{Nd}/u.test(c)).map(c => c >= '٠' && c <= '٩' ? c.codePointAt(0) - 0x660 : c).join(''))
          const all = [...document.querySelectorAll('details tbody tr')]
          return { clicks: all.reduce((sum, r) => sum + digits(r.cells[1].innerText) + digits(r.cells[2].innerText), 0), names: new Set(all.map(r => r.cells[0].innerText)).size }
        })
      }
      want('hours have names of their own', counts.hour.names, hours)
      want('hours and days', counts.hour.clicks, counts.day.clicks)
      want('there were clicks', counts.day.clicks > 0, true)
      for (const [query, says] of [['range=custom&from=1900-01-01&to=2026-01-01', 'too long'], ['range=custom&from=2026-02-02&to=2026-01-01', 'ends before'], ['range=bogus', 'Unknown range'], ['from=2026-99-99&to=x', 'two valid dates']]) {
        await page.evaluate(to => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')) }, '/app/clicks?' + query)
        await page.locator('#window-fault').getByText(says).waitFor()
        want('numbers of another range', await page.locator('.tiles').count(), 0)
        want('what is wrong', await page.locator('.bar [aria-invalid]').count() > 0, true)
      }
      await page.evaluate(to => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')) }, '/app/clicks?range=1h')
      await page.getByText('not available by minute').waitFor()
      found.figures.push(`${way.zone}: ${counts.hour.clicks} clicks in ${hours} hours of four days`)
    })
  }
}
