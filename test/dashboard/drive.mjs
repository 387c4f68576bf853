// Reads from standard input where the dashboard is, uses it in Chromium as people do, and
// writes what it found: {"faults": […], "done": […], "figures": […]}. dashboard_test.go
// says what stands in both.
import { readFileSync } from 'node:fs'
import { chromium, desk, judge, listen, phone, picture, want } from '../internal/browser/page.mjs'

const plan = JSON.parse(readFileSync(0, 'utf8'))
const found = { faults: [], done: [], figures: [] }
const browser = await chromium.launch({ executablePath: plan.program })
const patience = 10000 // milliseconds until a step has failed

// person opens the dashboard in a window of its own and takes steps there.
async function person (name, way, steps) {
  const context = await browser.newContext({ colorScheme: way.scheme, viewport: way.size, permissions: ['clipboard-read', 'clipboard-write'] })
  const page = await context.newPage()
  page.setDefaultTimeout(patience)
  const heard = []
  listen(page, name, heard)
  const look = async (what, options) => {
    const where = `${what}, ${way.scheme}, ${way.name}`
    await judge(page, where, way.scheme, found.faults)
    await picture(page, plan.pictures, where, options)
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

async function signIn (page) {
  await page.getByLabel('API key').fill(plan.key)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Links' }).waitFor()
  await page.locator('.body .row').first().waitFor()
}

const rows = page => page.locator('.body .row')
const notice = (page, text) => page.locator('.shelf').getByText(text).waitFor()
const search = page => page.getByRole('searchbox')
const cells = (page, at) => rows(page).nth(at).innerText()

// paste does what a person's paste does, without the clipboard of the machine.
const paste = (page, text) => page.evaluate(text => {
  const data = new DataTransfer()
  data.setData('text/plain', text)
  document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
}, text)

const lightPhone = { scheme: 'light', name: 'phone', size: phone }
const darkDesk = { scheme: 'dark', name: 'desk', size: desk }
const lightDesk = { scheme: 'light', name: 'desk', size: desk }
const darkPhone = { scheme: 'dark', name: 'phone', size: phone }

for (const way of [lightPhone, darkDesk]) {
  await person('signs in, ' + way.name, { ...way, provokes: ['401'] }, async (page, look, context) => {
    const loaded = await page.evaluate(() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).map(e => [e.name, e.encodedBodySize]))
    found.figures.push(`first load, ${way.name}: ${(loaded.reduce((n, [, size]) => n + size, 0) / 1024).toFixed(1)} KB in ${loaded.length} requests`)
    await look('sign in')
    await page.getByLabel('API key').fill('curt_' + 'x'.repeat(30))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('This is no key of this server').waitFor()
    await look('sign in refused')
    await signIn(page)
    await look('links')
    want('what the browser keeps', await page.evaluate(() => JSON.stringify(localStorage) + JSON.stringify(sessionStorage) + document.cookie), '{}{}')
    want('cookies', (await context.cookies()).length, 0)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
  })
}

await person('walks among 100,000', lightDesk, async page => {
  await signIn(page)
  want('few rows are in the page', await rows(page).count() < 60, true)
  await page.waitForFunction(() => {
    scrollTo(0, document.documentElement.scrollHeight)
    return Number(document.querySelector('.body .row:last-child').dataset.row) > 500
  })
  want('few rows are in the page', await rows(page).count() < 60, true)
  const began = Date.now()
  await search(page).fill('campaign 14001')
  await page.waitForFunction(() => document.querySelectorAll('.body .row').length === 1)
  found.figures.push(`a search among ${plan.links} shows after ${Date.now() - began} ms, typing included`)
  want('the address', new URL(page.url()).search, '?q=campaign+14001')
  await search(page).fill('nothing-is-called-so')
  await page.getByRole('heading', { name: 'Nothing found' }).waitFor()
  await page.getByRole('button', { name: 'Clear filters' }).first().click()
  await page.getByLabel('State').selectOption('expired')
  await page.waitForFunction(() => [...document.querySelectorAll('.body .row .state')].every(s => s.innerText === 'Expired'))
  await page.goBack()
  await page.waitForFunction(() => document.querySelector('.body .row .state')?.innerText === 'Live')
  want('the address', new URL(page.url()).search, '')
})

await person('makes a link by keyboard and sees it clicked', { ...lightDesk, provokes: ['409'] }, async (page, look) => {
  await signIn(page)
  await page.keyboard.press('c')
  await page.keyboard.type('example.com/by-keyboard')
  await look('create')
  await page.keyboard.press('Tab')
  await page.keyboard.type('hostile')
  await page.keyboard.press('Enter')
  await page.locator('[aria-invalid=true]').waitFor()
  want('what is wrong is in focus', await page.evaluate(() => document.activeElement.value), 'hostile')
  await look('create refused')
  await page.keyboard.press('Control+A')
  await page.keyboard.type('by-keyboard')
  await page.getByText('/by-keyboard is free.').waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.type('Made by keyboard')
  await page.keyboard.press('Tab')
  await page.keyboard.type('keyboard,')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Your link is ready' }).waitFor()
  await page.getByAltText('QR code').waitFor()
  await look('made')
  await page.keyboard.press('Enter') // the button that copies has the focus
  await notice(page, 'Copied')
  want('what was copied', await page.evaluate(() => navigator.clipboard.readText()), plan.base + '/by-keyboard')
  await page.keyboard.press('Escape')
  want('the link is on top', (await cells(page, 0)).includes('Made by keyboard'), true)
  const began = Date.now()
  for (let i = 0; i < 3; i++) want('a visit', (await fetch(plan.base + '/by-keyboard', { redirect: 'manual', headers: { 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0.0.0' } })).status, 302)
  await page.waitForFunction(() => document.querySelector('.body .row .clicks').innerText === '3')
  found.figures.push(`clicks are seen after ${Date.now() - began} ms`)
})

await person('changes a link', darkPhone, async (page, look) => {
  await signIn(page)
  await search(page).fill('by-keyboard')
  await page.waitForFunction(() => document.querySelectorAll('.body .row').length === 1)
  await rows(page).first().getByRole('button').first().click()
  await page.getByAltText('QR code').waitFor()
  await page.getByText('More options').click()
  await page.getByText('Campaign parameters').click()
  await page.getByLabel('Source').fill('letter')
  await page.getByLabel('Expires').selectOption('week')
  await page.getByLabel('Most clicks').fill('0')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Enter a whole number').waitFor()
  await look('edit', { fullPage: false })
  await page.getByLabel('Most clicks').fill('1000')
  await page.getByRole('button', { name: 'Save' }).click()
  await notice(page, 'Saved by-keyboard')
  const link = await (await fetch(plan.base + '/api/v1/links/by-keyboard', { headers: { Authorization: 'Bearer ' + plan.key } })).json()
  want('the link', [link.long_url, link.max_clicks, link.expires_at !== null, link.title].join(), 'https://example.com/by-keyboard?utm_source=letter,1000,true,Made by keyboard')
})

await person('turns off, fails, deletes', { ...darkDesk, provokes: ['503'] }, async (page, look) => {
  await signIn(page)
  const first = () => rows(page).first()
  const open = () => first().locator('.open').click()
  await open()
  await page.getByRole('button', { name: 'Turn off' }).click()
  await first().getByText('Off', { exact: true }).waitFor()
  await notice(page, 'is off')
  // A change that is refused shows at once, and then no more.
  await page.route('**/api/v1/links/*', (route, request) => request.method() === 'GET' ? route.continue() : setTimeout(() => route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"type":"/problems/unavailable","title":"Unavailable","status":503}' }), 300))
  await open()
  await page.getByRole('button', { name: 'Turn on' }).click()
  await first().getByText('Live', { exact: true }).waitFor()
  await first().getByText('Off', { exact: true }).waitFor()
  await notice(page, 'Not done')
  await look('not done')
  await page.unroute('**/api/v1/links/*')
  const code = await first().locator('.open bdi').innerText()
  await open()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByRole('button', { name: 'Delete for good' }).waitFor()
  await look('delete')
  await page.getByRole('button', { name: 'Delete for good' }).click()
  await notice(page, 'Deleted')
  want('the link is gone', await page.locator('.open bdi').getByText(code, { exact: true }).count(), 0)
})

await person('pastes', lightPhone, async (page, look) => {
  await signIn(page)
  await paste(page, 'https://example.com/pasted?utm_campaign=autumn')
  await page.getByRole('heading', { name: 'New link' }).waitFor()
  want('what was pasted', await page.getByLabel('Destination').inputValue(), 'https://example.com/pasted?utm_campaign=autumn')
  await page.keyboard.press('Escape')
  await paste(page, 'https://example.com/one\nhttps://example.com/two pasted-two\nhttps://example.com/three api\n')
  await page.getByRole('button', { name: 'Create 3 links' }).click()
  await page.getByText('2 links made, 1 refused').waitFor()
  await look('many')
  await page.getByRole('button', { name: 'Correct the refused' }).click()
  want('what is left', await page.getByLabel('One address per line').inputValue(), 'https://example.com/three api')
  await page.keyboard.press('Escape')
  want('the links are on top', (await cells(page, 0)).includes('example.com/two'), true)
})

await person('chooses many', { ...lightDesk, path: '/app/?q=pasted' }, async (page, look) => {
  await signIn(page)
  await page.waitForFunction(() => document.querySelectorAll('.body .row').length === 1)
  await search(page).fill('campaign 1400')
  await page.waitForFunction(() => document.querySelectorAll('.body .row').length > 5)
  const n = await rows(page).count()
  await page.getByLabel('Select all').check()
  await page.getByText(`${n} selected`).waitFor()
  await look('chosen')
  await page.getByRole('button', { name: 'Add tags' }).click()
  await page.getByLabel('Tags').fill('picked')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Enter')
  await notice(page, `${n} links changed`)
  want('each has the tag', await page.locator('.body .row').filter({ hasText: '+1' }).count(), n)
  await page.getByRole('button', { name: 'Turn off' }).click()
  await page.waitForFunction(() => [...document.querySelectorAll('.body .row .state')].every(s => s.innerText === 'Off'))
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('button', { name: 'Delete for good' }).click()
  await notice(page, `${n} links deleted`)
})

await person('finds the way by keyboard', { ...darkDesk, path: '/app/?sort=created_at' }, async (page, look) => {
  await signIn(page)
  const focused = () => page.evaluate(() => document.activeElement.closest('[data-row]')?.dataset.row ?? document.activeElement.type)
  for (const [key, at] of [['j', '0'], ['j', '1'], ['j', '2'], ['k', '1']]) {
    await page.keyboard.press(key)
    await page.waitForFunction(at => document.activeElement.closest('[data-row]')?.dataset.row === at, at)
  }
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press('j')
    await page.waitForFunction(at => document.activeElement.closest('[data-row]')?.dataset.row === at, String(i + 2))
  }
  await page.evaluate(() => scrollTo(0, 0))
  await page.waitForTimeout(50)
  want('the row in focus stays', await focused(), '41')
  await page.keyboard.press('?')
  await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor()
  await look('keys')
  await page.keyboard.press('Escape')
  await page.keyboard.press('/')
  want('the search', await focused(), 'search')
  await page.keyboard.type('c/j')
  want('letters are letters', await search(page).inputValue(), 'c/j')
})

await person('meets hostile texts and a lost network', { ...lightPhone, provokes: ['ERR_INTERNET_DISCONNECTED'] }, async (page, look, context) => {
  await signIn(page)
  await search(page).fill('hostile')
  await page.waitForFunction(() => document.querySelectorAll('.body .row').length === 1)
  want('the title as text', await rows(page).first().locator('.title').innerText(), plan.spelled)
  await look('hostile')
  await rows(page).first().getByRole('button').first().click()
  await page.getByAltText('QR code').waitFor()
  await look('hostile edit')
  await page.keyboard.press('Escape')
  await context.setOffline(true)
  await page.getByText('You are offline').first().waitFor()
  await search(page).fill('offline')
  await page.getByRole('heading', { name: 'could not be loaded' }).waitFor()
  await look('offline')
  await context.setOffline(false)
  await page.getByRole('heading', { name: 'Nothing found' }).waitFor()
})

await browser.close()
process.stdout.write(JSON.stringify(found))
