// The screen of one link, and that of all clicks: what is counted, and how soon.
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { want } from '../internal/browser/page.mjs'
import { darkDesk, darkPhone, lightDesk, lightPhone, notice, rows, search } from './person.mjs'

const within = 2000 // milliseconds until a click is seen

const agents = [
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1',
  'Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0',
  'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36',
  'curl/8.5.0', 'Googlebot/2.1 (+http://www.google.com/bot.html)'
]
const languages = ['de-DE,de;q=0.9', 'en-US', 'fr', 'ja', 'pt-BR']

// click follows a short link as a browser elsewhere would, without a dashboard.
function click (plan, code, { agent = agents[0], address = '', referrer = '', language = '', query = '' } = {}) {
  const { hostname, port } = new URL(plan.base)
  const headers = { 'User-Agent': agent }
  if (address) headers['X-Forwarded-For'] = address
  if (referrer) headers.Referer = referrer
  if (language) headers['Accept-Language'] = language
  return new Promise((resolve, reject) => {
    request({ hostname, port, path: `/${code}${query}`, headers, agent: false }, a => { a.resume(); a.on('end', () => resolve(a.statusCode)) }).on('error', reject).end()
  })
}

// crowd clicks many times, from many places, and leaves what strangers leave.
async function crowd (plan, code, n) {
  const referrers = ['', '', 'https://news.example/story', 'https://social.example/', 'https://mail.example/inbox', 'https://"><script>alert(1)</script>.example/']
  const queries = ['', '', '?qr=1', '?utm_source=letter&utm_campaign=spring', `?utm_source=${encodeURIComponent(plan.hostile.slice(0, 40))}`]
  let seed = 1
  const any = list => { // the same each time
    seed = seed * 48271 % 2147483647
    return list[Math.floor((seed / 2147483647) ** 1.7 * list.length)]
  }
  const addresses = Array.from({ length: 250 }, (_, i) => `203.0.113.${i + 1}`)
  for (let i = 0; i < n; i++) {
    want('a visit', await click(plan, code, { agent: any(agents), address: any(addresses), referrer: any(referrers), language: any(languages), query: any(queries) }), 302)
  }
}

const count = page => page.getByRole('main').locator('output')
const counted = async (page, n) => page.waitForFunction(n => document.querySelector('main output')?.textContent.replace(/\D/g, '') === String(n), n)
const tile = page => page.locator('.tiles dd b').first()
const chart = page => page.locator('.drawing path.people').first().waitFor({ state: 'attached' })

// shifts is how much of a page moved by itself since it was opened, as browsers count it.
const shifts = page => page.evaluate(() => new Promise(resolve => {
  let sum = 0
  new PerformanceObserver(list => { for (const e of list.getEntries()) if (!e.hadRecentInput) sum += e.value }).observe({ type: 'layout-shift', buffered: true })
  setTimeout(() => resolve(sum), 200)
}))

export async function one ({ plan, found, person, enter, signIn, ask }) {
  // still notes how much moved: what comes within half a second of a key is not counted,
  // so that a bound would measure the machine.
  const still = async (page, what) => found.figures.push(`${what}: ${(await shifts(page)).toFixed(3)} of the page moved by itself`)

  await ask('/api/v1/links', { method: 'POST', body: JSON.stringify({ long_url: 'https://example.com/one?q=%3Cb%3E', custom_alias: 'one-link', title: plan.hostile, tags: ['spring', plan.hostile.slice(0, 30)] }) })
  await crowd(plan, 'one-link', 180)
  for (const end = Date.now() + 180_000; (await ask('/api/v1/links/one-link/stats')).total_clicks < 180;) { // none comes later, among those that are watched
    want('the clicks are counted in three minutes', Date.now() < end, true)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  await click(plan, 'no-link-has-this-code')

  for (const way of [darkDesk, lightPhone]) {
    await person('looks at one link, ' + way.name, { ...way, path: '/app/links/one-link?range=24h' }, async (page, look) => {
      await enter(page)
      await chart(page)
      await page.getByText('Live', { exact: true }).first().waitFor()
      await page.getByRole('region', { name: 'Raw clicks' }).waitFor()
      await still(page, 'one link, ' + way.name)
      await look('one link', { fullPage: true })
      want('a script of a stranger', await page.evaluate(() => document.querySelector('main script, main img[src="x"]') === null), true)
      await page.getByRole('button', { name: 'Share statistics' }).click()
      await look('share')
    })
  }

  await person('sees a click from elsewhere', { ...lightDesk, path: '/app/links/one-link' }, async page => {
    await enter(page)
    await chart(page)
    await page.getByText('Live', { exact: true }).first().waitFor()
    let n = Number((await count(page).innerText()).replace(/\D/g, ''))
    const took = []
    for (let i = 0; i < 3 || i < 30 && Math.min(...took) > within; i++) { // other work only takes away
      const began = Date.now()
      await click(plan, 'one-link')
      await counted(page, ++n)
      took.push(Date.now() - began)
    }
    found.figures.push(`a click from elsewhere is seen after ${took.join(', ')} ms`)
    want('the soonest is seen in time', Math.min(...took) <= within, true)
  })

  await person('filters', { ...lightDesk, path: '/app/links/one-link' }, async (page, look) => {
    await enter(page)
    await chart(page)
    const all = await tile(page).innerText()
    await page.getByRole('button', { name: 'Germany', exact: true }).click()
    await page.getByRole('button', { name: 'Countries: Germany, remove filter' }).waitFor()
    await page.waitForFunction(all => document.querySelector('.tiles dd b').innerText !== all, all)
    want('the address', new URL(page.url()).search, '?country=DE')
    await page.getByRole('button', { name: 'Browsers', exact: true }).click()
    await page.getByRole('button', { name: 'Firefox', exact: true }).click()
    await page.getByRole('button', { name: 'Browsers: Firefox, remove filter' }).waitFor()
    want('the address', new URL(page.url()).search, '?country=DE&browser=Firefox')
    const single = page.getByRole('region', { name: 'Raw clicks' })
    await page.waitForFunction(() => {
      const rows = [...document.querySelectorAll('[aria-labelledby=raw] tbody tr')].map(r => r.innerText)
      return rows.length > 0 && rows.every(r => r.includes('Germany') && r.includes('Firefox'))
    })
    const [some] = await Promise.all([page.waitForEvent('download'), single.getByRole('button', { name: 'Download CSV' }).click()])
    const countries = new Set(readFileSync(await some.path(), 'utf8').trim().split('\r\n').slice(1).map(line => line.split(',')[6]))
    want('countries of the file', [...countries].join(), 'DE')
    await look('filtered', { fullPage: true })
    await page.goBack()
    await page.goBack()
    await page.waitForFunction(all => document.querySelector('.tiles dd b').innerText === all, all)
    want('the address', new URL(page.url()).search, '')
    await page.getByText('Show as table').click()
    await page.getByRole('columnheader', { name: 'Previous period' }).waitFor()
    await page.getByLabel('Range').selectOption('custom')
    await page.getByLabel('From', { exact: true }).fill('2026-01-01')
    await page.waitForFunction(() => location.search.includes('from=2026-01-01'))
    await chart(page)
  })

  await person('takes along', { ...darkDesk, path: '/app/links/one-link' }, async (page, look) => {
    await enter(page)
    await chart(page)
    await page.getByRole('button', { name: 'QR code' }).click()
    await page.getByAltText('QR code').waitFor()
    await page.getByLabel('Format').selectOption('png')
    await page.getByLabel('Size').selectOption('1024')
    await look('qr')
    const [picture] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download PNG' }).click()])
    want('the file', picture.suggestedFilename(), 'one-link.png')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Share statistics' }).click()
    await page.getByLabel('Expires').selectOption({ label: 'In 1 day' })
    await page.getByRole('button', { name: 'Create share link' }).click()
    const shared = await page.getByLabel('Copy this URL now; it won’t be shown again').inputValue()
    want('what is shared', (await fetch(shared)).status, 200)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Share statistics' }).click()
    await page.getByRole('button', { name: 'Revoke all share links' }).click()
    await notice(page, 'All share links revoked')
    want('what was shared', (await fetch(shared)).status !== 200, true)
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download CSV' }).click()])
    want('the file', file.suggestedFilename(), 'clicks-one-link.csv')
  })

  await person('is told what fails', { ...darkPhone, path: '/app/links/one-link', provokes: ['503', '404'] }, async (page, look) => {
    await page.route('**/stats?*', route => route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"type":"/problems/unavailable","title":"Unavailable","status":503}' }))
    await enter(page)
    await page.getByRole('heading', { name: 'The statistics could not be loaded' }).waitFor()
    await look('statistics failed')
    await page.unroute('**/stats?*')
    await page.getByRole('button', { name: 'Try again' }).click()
    await chart(page)
    await page.getByRole('link', { name: '← Links' }).click()
    await rows(page).first().waitFor()
    want('the address', new URL(page.url()).pathname, '/app/')
    await page.evaluate(() => { history.pushState(null, '', '/app/links/no-such-link'); dispatchEvent(new PopStateEvent('popstate')) })
    await page.getByRole('heading', { name: 'Link not found' }).waitFor()
    await look('no such link')
  })

  await person('goes from the list to a link', lightDesk, async (page, look) => {
    await signIn(page)
    await search(page).fill('one-link')
    await page.waitForFunction(() => document.querySelectorAll('.body .row').length === 1)
    await rows(page).first().locator('.clicks path').waitFor({ state: 'attached' })
    await look('sparkline')
    await search(page).blur()
    await page.keyboard.press('j')
    await page.waitForFunction(() => document.activeElement.closest('[data-row]'))
    await page.keyboard.press('s')
    await chart(page)
    want('the address', new URL(page.url()).pathname, '/app/links/one-link')
    await page.goBack()
    want('the search', await search(page).inputValue(), 'one-link')
  })

  for (const way of [lightDesk, darkPhone]) {
    await person('looks at all clicks, ' + way.name, way, async (page, look) => {
      await signIn(page)
      await page.getByRole('link', { name: 'Statistics', exact: true }).click()
      await page.getByRole('heading', { name: 'Statistics', exact: true }).waitFor()
      await page.waitForFunction(() => document.activeElement.innerText === 'Statistics')
      await chart(page)
      await page.getByText('Live', { exact: true }).first().waitFor()
      await page.getByText(/visits? to unknown links/).waitFor()
      await page.getByRole('region', { name: 'Top links' }).getByRole('link').first().waitFor()
      await still(page, 'all clicks, ' + way.name)
      await look('all clicks', { fullPage: true })
      const n = Number((await count(page).innerText()).replace(/\D/g, ''))
      const began = Date.now()
      await click(plan, 'one-link')
      await counted(page, n + 1)
      found.figures.push(`a click of any link is seen after ${Date.now() - began} ms`)
      want('of millions', n >= plan.clicks, true)
      const all = await tile(page).innerText()
      const asked = Date.now()
      await page.getByRole('button', { name: 'Germany', exact: true }).click()
      await page.getByRole('button', { name: 'Countries: Germany, remove filter' }).waitFor()
      await page.waitForFunction(all => document.querySelector('.tiles dd b').innerText !== all, all)
      found.figures.push(`the clicks of one country are counted after ${Date.now() - asked} ms`)
      want('what all links have counts on', Number((await count(page).innerText()).replace(/\D/g, '')) > n, true)
      await look('all clicks filtered', { fullPage: true })
      await page.goBack()
      await page.waitForFunction(all => document.querySelector('.tiles dd b').innerText === all, all)
    })
  }
}
