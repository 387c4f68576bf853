// Uses the screens about more than links as operators do. admin_test.go says what stands in
// the plan.
import { readFileSync } from 'node:fs'
import { want } from '../internal/browser/page.mjs'
import { asked, darkDesk, darkPhone, lightDesk, lightPhone, notice, stage } from './person.mjs'

const plan = JSON.parse(readFileSync(0, 'utf8'))
const the = await stage(plan)
const { person, found } = the

async function enter (page, key) {
  await the.enter(page, key)
  await page.getByLabel('API key').waitFor({ state: 'detached' })
}

// call asks the API itself, for what a step stands on and for what came of it.
async function call (method, path, body, key = plan.key) {
  const answer = await fetch(plan.base + '/api/v1' + path, { method, headers: { Authorization: 'Bearer ' + key, ...(body && { 'Content-Type': 'application/json' }) }, body: body && JSON.stringify(body) })
  const text = await answer.text()
  return { status: answer.status, ...(text && JSON.parse(text)) }
}

const visit = async code => (await fetch(`${plan.base}/${code}`, { redirect: 'manual', headers: { 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0.0.0' } })).status
const open = (page, screen) => page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: screen }).click()

// all counts the links with a tag, page by page.
async function all (tag) {
  const links = []
  for (let cursor = ''; ;) {
    const got = await call('GET', `/links?limit=100&tag=${tag}${cursor && '&cursor=' + cursor}`)
    links.push(...got.links)
    if (!got.next_cursor) return links
    cursor = got.next_cursor
  }
}

// downloaded is what the browser was given.
async function downloaded (page, click) {
  const [file] = await Promise.all([page.waitForEvent('download'), click()])
  return readFileSync(await file.path(), 'utf8')
}

const settled = async (what, is) => {
  for (let i = 0; i < 100; i++) {
    if (await is()) return
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error(what)
}

// A file with what goes wrong: one address that is none, one that is no web address, a
// code that stands twice, one that the server keeps, a quote in the wrong place, a row
// that is too wide. The others are links.
const rows = 4000
const wrong = ['http://%zz,,"bad', 'javascript:alert(1),,', ',only-code,', 'https://example.com/a,twice,', 'https://example.com/b,twice,', 'https://example.com/c,api,', 'https://example.com/d,x,y,z,too,wide']
const table = ['Destination URL,Slug,Label', ...wrong,
  `https://example.com/hostile,hostile,"${plan.hostile.replaceAll('"', '""')}"`, 'https://example.com/formula,formula,=1+1',
  ...Array.from({ length: rows }, (_, i) => `https://example.com/row/${i},,Row ${i}`)].join('\n') + '\n'

// toldOf are the rows that the page says were refused, or would be, with line and reason.
const toldOf = page => page.locator('[aria-labelledby=refused] tbody tr').evaluateAll(all => all.map(({ cells: [line, row, why] }) => `${line.innerText} ${row.innerText}: ${why.innerText}`))

await person('imports, stops and goes on', { ...lightDesk, provokes: ['ERR_FAILED'] }, async (page, look) => {
  await enter(page)
  await open(page, 'Import and export')
  await page.getByText('Drop a file here').waitFor()
  await look.both('import')
  await page.locator('#import-file').setInputFiles({ name: 'links.xlsx', mimeType: 'application/zip', buffer: Buffer.from('PK\u0003\u0004xxxx') })
  await page.getByText('Save it as CSV').waitFor()
  await page.locator('#import-file').setInputFiles({ name: `${plan.hostile.slice(0, 30)}.csv`.replaceAll('/', '|'), mimeType: 'text/csv', buffer: Buffer.from(table) })
  await page.getByText('4,004 links can be made, 5 rows cannot').waitFor()
  want('the column of addresses', await page.getByLabel('What Destination URL becomes').inputValue(), 'long_url')
  want('rows that cannot be made', (await toldOf(page)).join('\n'), `
2 ${wrong[0]}: A quote is not closed, or stands where none may.
3 ${wrong[1]}: Only http and https addresses.
4 ${wrong[2]}: There is no destination.
6 ${wrong[4]}: The code twice stands in line 5, too.
8 ${wrong[6]}: The row has more columns than the first line.`.slice(1))
  await look('import checked', { fullPage: true })
  await page.getByLabel('Tags for all of them').fill('imported')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Import 4,004 links' }).waitFor()

  // The first batch is made and its answer lost; the next waits, so that there is time to stop.
  let batches = 0
  await page.route('**/api/v1/links/bulk', async route => {
    batches++
    if (batches === 1) {
      await route.fetch()
      return route.abort('failed')
    }
    if (batches === 3) await new Promise(resolve => setTimeout(resolve, 700))
    return route.continue()
  })
  await page.getByRole('button', { name: 'Import 4,004 links' }).click()
  await page.getByText('The server cannot be reached').waitFor()
  await page.getByRole('button', { name: 'Go on' }).click()
  await settled('the third batch', () => batches >= 3)
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.getByText('Stopped', { exact: true }).waitFor()
  const made = () => page.locator('.facts dd').first().innerText()
  want('made before the stop', await made(), '1,999')
  await look.both('import stopped', { fullPage: true })
  await page.getByRole('button', { name: 'Go on' }).click()
  await page.getByText('The import is done').waitFor()
  want('made', await made(), '4,003')
  await page.getByText('reserved').first().waitFor()
  want('the row that the server refused', (await toldOf(page)).filter(r => r.startsWith(`7 ${wrong[5]}: `) && r.includes('reserved')).length, 1)
  await look('import done', { fullPage: true })
  const refused = await downloaded(page, () => page.getByRole('button', { name: 'Download these rows' }).click())
  want('rows that were refused', refused.trim().split('\n').length, 1 + 6)
  const results = await downloaded(page, () => page.getByRole('button', { name: 'Download all results' }).click())
  want('results', results.trim().split('\n').length, 1 + rows + 9)
  await settled('every link is there once', async () => (await all('imported')).length === 4003)
})

await person('imports JSON Lines on a phone', darkPhone, async (page, look) => {
  await enter(page)
  await page.goto(plan.base + '/app/transfer/import') // keys do not outlive a page
  await enter(page)
  const lines = [
    { long_url: 'https://example.com/off', short_code: 'switched-off', status: 'disabled', tags: ['json', plan.hostile.slice(0, 40)] }, { longUrl: 'https://example.com/shlink', shortCode: 'from-shlink', meta: { maxVisits: 5 } },
    { short_code: 'gone', status: 'deleted', domain: '', long_url: '' }, { long_url: 'https://example.com/when', expires_at: 'tomorrow' }
  ].map(l => JSON.stringify(l))
  await page.locator('#import-file').setInputFiles({ name: 'links.jsonl', mimeType: 'application/json', buffer: Buffer.from([...lines, '{broken'].join('\n')) })
  await page.getByRole('button', { name: 'Import 2 links' }).click()
  await page.getByText('The import is done').waitFor()
  await look('import done', { fullPage: true })
  want('a link that was off is off', (await call('GET', '/links/switched-off')).status, 'disabled')
  want('bounds of another shortener', (await call('GET', '/links/from-shlink')).max_clicks, 5)
})

await person('exports', darkDesk, async (page, look) => {
  await enter(page)
  await open(page, 'Import and export')
  await page.getByRole('navigation', { name: 'Import or export' }).getByRole('link', { name: 'Export' }).click()
  await page.getByLabel('Tag').fill('imported')
  await look.both('export')
  const began = Date.now()
  const csv = await downloaded(page, () => page.getByRole('button', { name: 'Export', exact: true }).click())
  found.figures.push(`4,003 links exported in ${Date.now() - began} ms`)
  want('lines', csv.trim().split('\n').length, 1 + 4003)
  want('a cell that a spreadsheet would run', csv.includes(",'=1+1,"), true)
  await page.getByText('The export is done').waitFor()
  await look('export done')
  await page.getByRole('button', { name: 'Another export' }).click()
  await page.getByLabel('Format').selectOption('jsonl')
  await page.getByLabel('Search').fill('hostile')
  const json = await downloaded(page, () => page.getByRole('button', { name: 'Export', exact: true }).click())
  want('the title as it is', JSON.parse(json).title, plan.hostile)
  // A choice of links is a file as well.
  await open(page, 'Links')
  await page.getByRole('searchbox').fill('formula')
  await page.waitForFunction(() => document.querySelectorAll('.body .row').length === 1)
  await page.getByLabel('Select formula').check()
  const chosen = await downloaded(page, () => page.getByRole('button', { name: 'Export', exact: true }).click())
  want('the choice', chosen.split('\n')[1].includes('https://example.com/formula'), true)
})

await person('makes, rotates and revokes keys', { ...darkDesk, provokes: ['asked before it was left'] }, async (page, look) => {
  await enter(page)
  await open(page, 'Keys')
  await page.getByRole('heading', { name: 'No keys yet' }).waitFor()
  await look('keys empty')
  await page.getByRole('button', { name: 'New key' }).first().click()
  await page.getByRole('button', { name: 'Make the key' }).click()
  await page.getByText('Say what the key is for').waitFor()
  want('what is wrong is in focus', await page.evaluate(() => document.activeElement.getAttribute('aria-invalid')), 'true')
  await page.getByLabel('Name').fill(plan.hostile.slice(0, 60))
  await page.getByLabel('Expires').selectOption('month')
  await look.both('key form')
  await page.getByRole('button', { name: 'Make the key' }).click()
  const secret = await page.getByLabel('The key itself').innerText()
  await look('key made')
  await page.getByRole('button', { name: 'Copy the key' }).click()
  want('what was copied', await page.evaluate(() => navigator.clipboard.readText()), secret)
  await page.getByRole('button', { name: 'I have it' }).click()
  want('the key works', (await call('GET', '/keys/self', undefined, secret)).scopes.length, 3)
  want('the secret is gone from the page', (await page.content()).includes(secret), false)
  await page.getByRole('button', { name: /^Rotate/ }).click()
  await page.getByLabel('The secret before goes on').selectOption('0')
  await page.getByRole('button', { name: 'Make a new secret' }).click()
  const second = await page.getByLabel('The key itself').innerText()
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  await page.mouse.click(5, 5)
  want('what is shown once stays', await page.getByLabel('The key itself').innerText(), second)
  for (let i = 0; i < 2; i++) {
    const left = page.evaluate(() => new Promise(resolve => addEventListener('popstate', () => requestAnimationFrame(resolve), { once: true })))
    await page.evaluate(() => history.back())
    await left
    want('and Back shows nothing else', [new URL(page.url()).pathname, await page.getByLabel('The key itself').innerText()].join(), `/app/keys,${second}`)
  }
  want('what the browser asks', await asked(page, () => page.evaluate(() => location.reload())), 'beforeunload')
  await page.getByRole('button', { name: 'I have it' }).click()
  await page.goBack() // which goes where it would have gone before
  await page.getByRole('heading', { name: 'Links' }).waitFor()
  await page.goForward()
  await page.getByRole('heading', { name: 'API keys' }).waitFor()
  want('the secret before', (await call('GET', '/keys/self', undefined, secret)).status, 401)
  want('the new one', (await call('GET', '/keys/self', undefined, second)).status, 200)
  await look.both('keys')
  await page.getByRole('button', { name: /^Revoke/ }).click()
  await look('key revoke')
  await page.getByRole('button', { name: 'Revoke for good' }).click()
  await page.getByRole('heading', { name: 'No keys yet' }).waitFor()
  await notice(page, 'Revoked')
  await settled('the key is refused', async () => (await call('GET', '/keys/self', undefined, second)).status === 401)
})

await person('makes links and may not list them', { ...lightPhone, provokes: ['403'] }, async (page, look) => {
  const { key } = await call('POST', '/keys', { name: 'writer', scopes: ['links:write'] })
  await enter(page, key)
  await page.getByRole('heading', { name: 'This key may make links' }).waitFor()
  await page.keyboard.press('c')
  await page.getByLabel('Destination').fill('https://example.com/by-a-writer')
  await page.getByRole('button', { name: 'Create link' }).click()
  await page.getByRole('heading', { name: 'Your link is ready' }).waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.locator('.body .row').first().waitFor()
  await look('links of a writer')
})

await call('POST', '/links', { long_url: 'https://example.com/counted', custom_alias: 'counted' })
await person('sees statistics and no links', { ...lightPhone, provokes: ['403'], path: '/app/links/counted' }, async (page, look) => {
  const { key } = await call('POST', '/keys', { name: 'counter', scopes: ['stats:read'] })
  await enter(page, key)
  await page.getByText('Where it leads is for keys').waitFor()
  await page.locator('.tiles dd b').first().waitFor()
  await look('statistics alone')
  await page.evaluate(() => { history.pushState(null, '', '/app/transfer'); dispatchEvent(new PopStateEvent('popstate')) })
  await page.getByText('Read links (links:read) or Write links').waitFor()
})

await person('sees what the key may do, and nothing else', lightPhone, async (page, look) => {
  const { key } = await call('POST', '/keys', { name: 'reader', scopes: ['links:read'] })
  await enter(page, key)
  await page.locator('.body .row').first().waitFor()
  const screens = await page.getByRole('navigation', { name: 'Screens' }).getByRole('link').allInnerTexts()
  want('screens', ['Keys', 'Safety', 'Health'].some(s => screens.includes(s)), false)
  want('making links', await page.getByRole('button', { name: 'New link' }).count(), 0)
  await look('links for readers')
  await page.locator('.body .row input').first().check()
  want('deleting links', await page.getByRole('button', { name: 'Delete' }).count(), 0)
  await open(page, 'Import and export')
  await page.getByRole('navigation', { name: 'Import or export' }).waitFor()
  want('parts', (await page.getByRole('navigation', { name: 'Import or export' }).getByRole('link').allInnerTexts()).join(), 'Export')
})

// What waits for moderators: links that strangers reported, with what they wrote.
for (let i = 0; i < 6; i++) {
  await call('POST', '/links', { long_url: `https://evil.example/${i}?${plan.hostile}`, custom_alias: `case-${i}`, title: plan.hostile, tags: ['evil'] })
  await call('POST', '/reports', { code: `case-${i}`, category: i % 2 ? 'phishing' : 'malware', text: plan.hostile, contact: `${plan.hostile.slice(0, 60)}@example.com` })
}

await person('decides in bulk, and undoes it', { ...lightDesk, path: '/app/safety' }, async (page, look) => {
  await enter(page)
  const queue = page.locator('tr[data-id]')
  await settled('six cases', async () => await queue.count() === 6)
  await look.both('reviews')
  await page.getByLabel('Reported for').selectOption('phishing')
  await settled('three of phishing', async () => await queue.count() === 3)
  await page.keyboard.press('Escape')
  await page.evaluate(() => document.activeElement.blur())
  for (const key of ['j', 'x', 'j', 'x']) await page.keyboard.press(key)
  await page.getByText('2 selected').waitFor()
  await page.getByRole('button', { name: 'Block' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click()
  await page.getByText('Say why').waitFor()
  await page.getByLabel('Reason').fill(plan.markup)
  await look.both('decide')
  await page.evaluate(() => addEventListener('submit', () => {
    const began = performance.now()
    new MutationObserver((_, o) => {
      if (document.querySelectorAll('tr[data-id]').length > 1) return
      globalThis.took = performance.now() - began
      o.disconnect()
    }).observe(document.body, { childList: true, subtree: true })
  }, { capture: true, once: true }))
  await page.keyboard.press('Enter')
  await settled('they leave the queue', async () => await queue.count() === 1)
  found.figures.push(`a decision shows after ${(await page.evaluate(() => globalThis.took)).toFixed(0)} ms`)
  await notice(page, '2 links are now: Blocked')
  const blocked = []
  for (const i of [1, 3, 5]) if (await visit(`case-${i}`) === 403) blocked.push(i)
  want('visitors are stopped', blocked.length, 2)
  await look('decided')
  await page.getByRole('button', { name: 'Undo' }).click()
  await notice(page, '2 links are as before')
  want('visitors are led on', await visit(`case-${blocked[0]}`), 302)
  await page.getByLabel('Show').selectOption('closed')
  await settled('two were decided', async () => await queue.count() === 2)
  await look('reviews decided')
  await queue.first().getByRole('button').first().click()
  await page.getByText('What was decided before').waitFor()
  await page.getByText(plan.spelled, { exact: true }).first().waitFor()
  await look.both('review')
})

await person('answers an appeal on a phone', { ...lightPhone, path: '/app/safety' }, async (page, look) => {
  await call('PUT', '/links/case-0/safety', { safety: 'quarantined', reason: 'looked bad' })
  await call('POST', '/appeals', { code: 'case-0', reason: plan.hostile })
  await enter(page)
  await page.getByLabel('Brought by').selectOption('appeal')
  await page.getByRole('button', { name: 'Review case-0' }).waitFor()
  await look('reviews')
  await page.getByRole('button', { name: 'Review case-0' }).click()
  await page.getByLabel('Answer to the owner').fill('It was a mistake.')
  await look('review')
  await page.getByRole('button', { name: 'Answer the appeal' }).click()
  await page.getByText('It was a mistake.').first().waitFor()
  want('the link is clean', (await call('GET', '/links/case-0')).safety, 'clean')
})

await person('bans, looks and lifts', { ...darkDesk, path: '/app/safety/bans', provokes: ['400'] }, async (page, look) => {
  await enter(page)
  await page.getByRole('heading', { name: 'No bans' }).waitFor()
  await page.getByRole('button', { name: 'New ban' }).click()
  await page.getByLabel('Name').fill('evil.example/')
  await page.locator('[aria-invalid=true]').waitFor()
  await page.getByLabel('Name').fill('evil.example')
  await page.getByText('It means 6 links.').waitFor()
  await page.getByLabel('Reason').fill(plan.markup)
  await look.both('ban')
  await page.getByRole('button', { name: 'Ban', exact: true }).click()
  await notice(page, 'Banned evil.example')
  await settled('visitors are stopped', async () => await visit('case-2') === 403)
  await look('bans')
  await page.getByRole('button', { name: 'Lift evil.example' }).click()
  await page.getByRole('dialog').getByLabel('Reason').fill('checked')
  await page.getByRole('button', { name: 'Lift the ban' }).click()
  await notice(page, 'Lifted the ban')
  await settled('visitors are led on', async () => await visit('case-2') === 302)
  await page.getByRole('navigation', { name: 'Parts of safety' }).getByRole('link', { name: 'Journal' }).click()
  await page.getByText('Lifted').first().waitFor()
  await look.both('journal', { fullPage: true })
  await page.getByLabel('About').fill('case-1')
  await page.keyboard.press('Enter')
  await settled('the journal of one link', async () => (await page.locator('ol li').count()) === 2)
})

await person('sees how the server does', { ...lightDesk, path: '/app/health', provokes: ['503'] }, async (page, look, context) => {
  await enter(page)
  await page.getByRole('heading', { name: 'Storage' }).waitFor()
  await page.getByText('none noted').waitFor()
  await look.both('health', { fullPage: true })
  await page.setViewportSize({ width: 375, height: 667 })
  await look('health on a phone', { fullPage: true })
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.route('**/api/v1/health', route => route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"type":"/problems/unavailable","title":"Unavailable","status":503}' }))
  await page.getByText('The server does not answer').waitFor()
  await page.route('**/api/v1/keys?**', route => route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"type":"/problems/unavailable","title":"Unavailable","status":503}' }))
  await open(page, 'Keys')
  await page.getByRole('heading', { name: 'could not be loaded' }).waitFor()
  await look('keys failed')
  await page.unroute('**/api/v1/keys?**')
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('reader').waitFor()
})

await person('chooses a domain, a beginning and a template', lightDesk, async (page, look) => {
  await enter(page)
  const form = () => page.getByRole('button', { name: 'New link' }).first().click()
  await form()
  await page.getByRole('textbox', { name: 'Destination' }).fill('https://example.com/campaign')
  await page.getByText('Campaign parameters').click()
  await page.getByLabel('Source').fill('letter')
  await page.getByLabel('Campaign', { exact: true }).fill('spring')
  await page.getByRole('button', { name: 'Keep as a template' }).click()
  await page.getByLabel('Name of the template').fill(plan.hostile.slice(0, 50))
  await page.getByRole('button', { name: 'Keep', exact: true }).click()
  await page.getByRole('textbox', { name: 'Destination' }).fill('https://example.com/other')
  await page.getByLabel('Use a template').selectOption({ index: 0 })
  await page.getByLabel('Use a template').selectOption({ index: 1 })
  want('the template', await page.getByRole('textbox', { name: 'Destination' }).inputValue(), 'https://example.com/other?utm_source=letter&utm_campaign=spring')
  await page.getByLabel('Domain').selectOption(plan.second)
  await page.getByLabel('Short code').fill('later')
  await page.getByText(`${plan.second}/later is free`).waitFor()
  await page.getByText('QR code of the short code').click()
  await page.getByAltText('QR code of the short code').waitFor()
  await page.getByText('More options').click()
  await page.getByLabel('Starts').fill('2099-01-01T09:00')
  await look.both('form')
  await page.getByRole('button', { name: 'Create link' }).click()
  await page.getByRole('heading', { name: 'Your link is ready' }).waitFor()
  const link = await call('GET', `/links/later?domain=${plan.second}`)
  want('the link', [link.domain, link.state].join(), `${plan.second},not_yet`)
})

await the.end()
process.stdout.write(JSON.stringify(found))
