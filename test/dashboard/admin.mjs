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
  for (const end = Date.now() + 180_000; Date.now() < end;) {
    if (await is()) return
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error(what)
}

// A file with what goes wrong: a quote in the wrong place, an address that is no web address, a
// row without one, a code that stands twice, one that the server keeps, a row that is too wide. The
// others are links, so many that the upload takes several requests and the import several batches.
const rows = 24000
const wrong = ['http://%zz,,"bad', 'javascript:alert(1),,', ',only-code,', 'https://example.com/a,twice,', 'https://example.com/b,twice,', 'https://example.com/c,api,', 'https://example.com/d,x,y,z,too,wide']
const table = Buffer.from(['Destination URL,Slug,Label', ...wrong,
  `https://example.com/hostile,hostile,"${plan.hostile.replaceAll('"', '""')}"`, 'https://example.com/formula,formula,=1+1',
  ...Array.from({ length: rows }, (_, i) => `https://example.com/row/${i},,Row ${i} ${'x'.repeat(60)}`)].join('\n') + '\n')
const links = rows + 3
const csvFile = { name: `${plan.hostile.slice(0, 30)}.csv`.replaceAll('/', '|'), mimeType: 'text/csv', buffer: table }
const many = n => n.toLocaleString('en')
const importOf = n => `Import ${many(n)} links`

// toldOf are the rows that the page says have failed, or would, with line and reason.
const toldOf = page => page.locator('[aria-labelledby=failed-rows] tbody tr').evaluateAll(all => all.map(({ cells: [line, code, why] }) => `${line.innerText} ${code.innerText}: ${why.innerText}`))
const created = async page => Number((await page.locator('.facts dd').first().innerText()).replaceAll(',', ''))
const idOf = page => new URL(page.url()).searchParams.get('job')
const listed = page => page.locator('[data-id]').count()

await person('uploads with interruptions', { ...lightDesk, provokes: ['ERR_FAILED'] }, async (page, look) => {
  await enter(page)
  await open(page, 'Import and export')
  await page.getByText('Drop a file here').waitFor()
  await page.getByText('No jobs yet').waitFor()
  await look.both('import')
  await page.locator('#import-file').setInputFiles({ name: 'links.xlsx', mimeType: 'application/zip', buffer: Buffer.from('PK\u0003\u0004xxxx') })
  await page.getByText('save it as CSV').waitFor()
  await page.getByRole('button', { name: 'Delete: Check, links.xlsx' }).click()
  await notice(page, 'Deleted')
  await page.getByText('Drop a file here').waitFor()

  // The answer to the first part is lost, and the second part itself.
  const sent = []
  await page.route('**/api/v1/jobs/*/input?*', async route => {
    sent.push(new URL(route.request().url()).searchParams.get('offset'))
    if (sent.length === 1) await route.fetch()
    return sent.length <= 2 ? route.abort('failed') : route.continue()
  })
  await page.locator('#import-file').setInputFiles(csvFile)
  await page.getByText('Can’t reach the server').waitFor()
  await page.getByText('The upload has stopped').waitFor()
  await look.both('upload stopped')
  await page.getByRole('button', { name: 'Continue' }).click()
  await settled('the second part', () => sent.length === 2)
  await page.getByText('Can’t reach the server').waitFor()
  want('where the upload continues', sent.join(), '0,1048576')
  const id = idOf(page)
  await page.reload() // which knows no file
  await enter(page)
  await page.getByText('The upload was interrupted').waitFor()
  await look('upload interrupted')
  await page.locator('#import-file').setInputFiles({ ...csvFile, buffer: table.subarray(1) })
  await page.getByText('This is another file').waitFor()
  await page.locator('#import-file').setInputFiles(csvFile)
  await page.getByText(`${many(links)} links can be created, 6 rows cannot`).waitFor()
  want('what was sent', sent.slice(0, 3).join(), '0,1048576,1048576')
  want('the job is the same', [idOf(page), (await call('GET', '/jobs/' + id)).state].join(), `${id},done`)
})

await person('checks, imports, cancels and continues', { ...lightDesk, provokes: ['404'] }, async (page, look, context) => {
  await enter(page)
  await open(page, 'Import and export')
  await page.getByRole('link', { name: /^Check: / }).click() // of the page before, which was closed
  await page.getByText(`${many(links)} links can be created, 6 rows cannot`).waitFor()
  want('the column of addresses', await page.getByLabel('What Destination URL becomes').inputValue(), 'long_url')
  want('the columns by example', (await page.locator('[aria-labelledby=columns] tbody tr').first().innerText()).includes('javascript:alert(1)'), true)
  await page.locator('[aria-labelledby=failed-rows] tbody tr').nth(5).waitFor()
  want('rows that cannot be created', (await toldOf(page)).join('\n'), `
2 : A quote is not closed.
3 : Destination: The URL must begin with https:// or http://.
4 only-code: No long URL.
6 twice: Short code: twice stands on line 5 already.
7 api: Short code: this slug is reserved.
8 : 6 columns, the first line has 3.`.slice(1))
  await look('import checked', { fullPage: true })
  await page.getByLabel('What Destination URL becomes').selectOption('')
  await page.getByText('Choose the column with the destinations').waitFor()
  await look.both('import without destinations')
  await page.getByLabel('What Slug becomes').selectOption('title')
  await page.getByText('Choose the column with the destinations').waitFor()
  await page.getByLabel('What Destination URL becomes').selectOption('long_url')
  await page.getByText(`${many(links + 2)} links can be created, 4 rows cannot`).waitFor() // no code is wrong
  await page.getByLabel('What Slug becomes').selectOption('short_code')
  await page.getByLabel('What Label becomes').selectOption('title')
  await page.getByLabel('Tags for all of them').fill('imported')
  await page.keyboard.press('Enter')
  await settled('the last choice is checked', async () => (await call('GET', '/jobs/' + idOf(page))).options?.tags?.join() === 'imported')
  await page.getByRole('button', { name: importOf(links) }).waitFor()
  want('a check takes the place of that before', await listed(page), 1)

  // A second page has the same check open; the input is imported once.
  const second = await context.newPage()
  await second.goto(page.url())
  await enter(second)
  await second.getByRole('button', { name: importOf(links) }).waitFor()

  // Somebody cancels the import as soon as the first links are there.
  await page.route('**/api/v1/jobs', async route => {
    if (route.request().method() !== 'POST') return route.continue()
    const response = await route.fetch()
    const { id } = await response.json()
    while ((await call('GET', '/jobs/' + id)).progress.created === 0);
    await call('POST', `/jobs/${id}/cancel`)
    return route.fulfill({ response })
  }, { times: 1 })
  await page.getByRole('button', { name: importOf(links) }).click()
  await page.getByText('The import was canceled', { exact: true }).waitFor()
  const first = await created(page)
  want('some were created before', first > 0 && first < links, true)
  await settled('rows that failed', async () => (await toldOf(page)).length === 6) // their page comes after the state
  await look.both('import canceled', { fullPage: true })
  await second.getByRole('button', { name: importOf(links) }).click()
  await second.getByText('It no longer exists').waitFor()
  await second.close()

  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByText('Creating links').or(page.getByText('Waiting for a server')).or(page.getByText('The import is done')).first().waitFor()
  await page.reload() // the job does not need the page
  await enter(page)
  await page.getByText('The import is done').waitFor()
  want('created by both', first + await created(page), links)
  await look('import done', { fullPage: true })
  const results = await downloaded(page, () => page.getByRole('button', { name: 'Download all results' }).click())
  want('results', results.trim().split('\n').length, 1 + links - first)
  await page.getByRole('link', { name: /^Import: / }).nth(1).click()
  await page.getByText('The import was canceled', { exact: true }).waitFor()
  const failed = await downloaded(page, () => page.getByRole('button', { name: 'Download failed rows' }).click())
  want('rows that failed, in a file', failed.trim().split('\n').length, 1 + 6)
  await settled('every link is there once', async () => (await all('imported')).length === links)
})

await person('waits for a limit, and cancels', lightPhone, async (page, look) => {
  const { key, id } = await call('POST', '/keys', { name: 'limited', scopes: ['links:read', 'links:write'], plan: 'free' })
  await enter(page, key)
  await page.goto(plan.base + '/app/transfer/import')
  await enter(page, key)
  const text = Array.from({ length: 30 }, (_, i) => `https://example.com/limited/${i}`).join('\n')
  await page.locator('#import-file').setInputFiles({ name: 'limited.csv', mimeType: 'text/csv', buffer: Buffer.from(text) })
  await page.getByRole('button', { name: 'Import 30 links' }).click()
  await page.getByText('The import waits for a limit').waitFor()
  const first = await created(page)
  await look('import waiting')
  await page.getByRole('button', { name: 'Cancel', exact: true }).click()
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByText('The import waits for a limit').waitFor()
  await page.locator('tr[data-id]', { hasText: 'Waiting' }).getByRole('button', { name: /^Cancel/ }).click()
  await page.getByText('The import was canceled', { exact: true }).waitFor()
  const there = (await call('GET', '/links?limit=100')).links.filter(l => l.long_url.includes('/limited/'))
  want('created before the limit', [first > 0, first + await created(page), new Set(there.map(l => l.long_url)).size].join(), `true,${there.length},${there.length}`)
  await call('DELETE', '/keys/' + id)
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
  await page.getByText('2 links can be created, 2 rows cannot, 1 deleted link is left out').waitFor()
  await look.both('import of JSON Lines checked', { fullPage: true })
  await page.getByRole('button', { name: 'Import 2 links' }).click()
  await page.getByText('The import is done').waitFor()
  await look('import done', { fullPage: true })
  want('a link that was off is off', (await call('GET', '/links/switched-off')).status, 'disabled')
  want('bounds of another shortener', (await call('GET', '/links/from-shlink')).max_clicks, 5)
})

await person('exports', darkDesk, async (page, look, context) => {
  await enter(page)
  await open(page, 'Import and export')
  await page.getByRole('navigation', { name: 'Import or export' }).getByRole('link', { name: 'Export' }).click()
  await page.getByLabel('Tag').fill('imported')
  await look.both('export')

  // The network is slow, so that the download can be stopped; then it continues where it was.
  const network = await context.newCDPSession(page)
  const slow = bytes => network.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: bytes, uploadThroughput: -1 })
  await slow(30 << 10)
  const began = Date.now()
  await page.getByRole('button', { name: 'Export', exact: true }).click()
  await page.getByText(/^Downloading: .*[MK]B$/i).waitFor()
  found.figures.push(`${links} links are exported and downloading after ${Date.now() - began} ms`)
  await page.locator('form, section').getByRole('button', { name: 'Stop' }).click()
  await slow(-1)
  const again = page.waitForRequest(r => r.url().endsWith('/result'))
  const csv = await downloaded(page, () => page.getByRole('button', { name: 'Retry' }).click())
  want('the download continues', /^bytes=[1-9]\d*-$/.test((await again).headers().range), true)
  want('lines', csv.trim().split('\n').length, 1 + links)
  want('all of them differ', new Set(csv.trim().split('\n')).size, 1 + links)
  want('a cell that a spreadsheet would run', csv.includes(",'=1+1,"), true)
  await page.getByText('The export is done').waitFor()
  await look('export done')
  await page.getByRole('button', { name: 'Another export' }).click()
  await page.getByLabel('Format').selectOption('jsonl')
  await page.getByLabel('Search').fill('hostile')
  const json = await downloaded(page, () => page.getByRole('button', { name: 'Export', exact: true }).click())
  want('the title as it is', JSON.parse(json).title, plan.hostile)
  await page.getByRole('button', { name: 'Another export' }).click()
  await page.getByLabel('Search').fill('nothing-has-this-word')
  await page.getByRole('button', { name: 'Export', exact: true }).click()
  await page.getByText('No link matches').waitFor()

  // An import takes the export back, here to another domain, where its code is free.
  await page.getByRole('navigation', { name: 'Import or export' }).getByRole('link', { name: 'Import' }).click()
  await page.locator('#import-file').setInputFiles({ name: 'back.jsonl', mimeType: 'application/json', buffer: Buffer.from(json) })
  await page.getByText('There is nothing to import').waitFor()
  await page.getByLabel('Domain').selectOption(plan.second)
  await page.getByRole('button', { name: 'Import 1 link' }).click()
  await page.getByText('The import is done').waitFor()
  want('the link is as it was', (await call('GET', `/links/hostile?domain=${plan.second}`)).title, plan.hostile)
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
  await open(page, 'API keys')
  await page.getByRole('heading', { name: 'No keys yet' }).waitFor()
  await look('keys empty')
  await page.getByRole('button', { name: 'New key' }).first().click()
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByText('Enter a name').waitFor()
  await page.waitForFunction(() => document.activeElement.getAttribute('aria-invalid') === 'true') // with the next frame
  await page.getByLabel('Name').fill(plan.hostile.slice(0, 60))
  await page.getByLabel('Expires').selectOption('month')
  await look.both('key form')
  await page.getByRole('button', { name: 'Create key' }).click()
  const secret = await page.getByLabel('Secret key').innerText()
  await look('key made')
  await page.getByRole('button', { name: 'Copy key' }).click()
  want('what was copied', await page.evaluate(() => navigator.clipboard.readText()), secret)
  await page.getByRole('button', { name: 'Done' }).click()
  want('the key works', (await call('GET', '/keys/self', undefined, secret)).scopes.length, 3)
  want('the secret is gone from the page', (await page.content()).includes(secret), false)
  await page.getByRole('button', { name: /^Rotate/ }).click()
  await page.getByLabel('Keep the old secret valid').selectOption('0')
  await page.getByRole('button', { name: 'Rotate key' }).click()
  const second = await page.getByLabel('Secret key').innerText()
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  await page.mouse.click(5, 5)
  want('what is shown once stays', await page.getByLabel('Secret key').innerText(), second)
  for (let i = 0; i < 2; i++) {
    const left = page.evaluate(() => new Promise(resolve => addEventListener('popstate', () => requestAnimationFrame(resolve), { once: true })))
    await page.evaluate(() => history.back())
    await left
    want('and Back shows nothing else', [new URL(page.url()).pathname, await page.getByLabel('Secret key').innerText()].join(), `/app/keys,${second}`)
  }
  want('what the browser asks', await asked(page, () => page.evaluate(() => location.reload())), 'beforeunload')
  await page.getByRole('button', { name: 'Done' }).click()
  await page.goBack() // which goes where it would have gone before
  await page.getByRole('heading', { name: 'Links' }).waitFor()
  await page.goForward()
  await page.getByRole('heading', { name: 'API keys' }).waitFor()
  want('the secret before', (await call('GET', '/keys/self', undefined, secret)).status, 401)
  want('the new one', (await call('GET', '/keys/self', undefined, second)).status, 200)
  await look.both('keys')
  await page.getByRole('button', { name: /^Revoke/ }).click()
  await look('key revoke')
  await page.getByRole('button', { name: 'Revoke key' }).click()
  await page.getByRole('heading', { name: 'No keys yet' }).waitFor()
  await notice(page, 'Revoked')
  await settled('the key is refused', async () => (await call('GET', '/keys/self', undefined, second)).status === 401)
})

await person('makes links and may not list them', { ...lightPhone, provokes: ['403'] }, async (page, look) => {
  const { key } = await call('POST', '/keys', { name: 'writer', scopes: ['links:write'] })
  await enter(page, key)
  await page.getByRole('heading', { name: 'This key can create links' }).waitFor()
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
  await page.getByText('The destination requires a key').waitFor()
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
  want('screens', ['API keys', 'Moderation', 'Health'].some(s => screens.includes(s)), false)
  want('making links', await page.getByRole('button', { name: 'New link' }).count(), 0)
  await look('links for readers')
  await page.locator('.body .row input').first().check()
  want('deleting links', await page.getByRole('button', { name: 'Delete' }).count(), 0)
  await open(page, 'Import and export')
  await page.getByRole('navigation', { name: 'Import or export' }).waitFor()
  want('parts', (await page.getByRole('navigation', { name: 'Import or export' }).getByRole('link').allInnerTexts()).join(), 'Export')
  await page.getByRole('link', { name: /^Import: / }).first().click()
  await page.getByText('The import is done').waitFor()
  want('changing imports', await page.getByRole('button', { name: /^(Delete|Cancel|Continue|Choose)/ }).evaluateAll(all => all.filter(b => !b.getAttribute('aria-label')?.includes('Export')).length), 0)
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
  await page.getByLabel('Category').selectOption('phishing')
  await settled('three of phishing', async () => await queue.count() === 3)
  await page.keyboard.press('Escape')
  await page.evaluate(() => document.activeElement.blur())
  for (const key of ['j', 'x', 'j', 'x']) await page.keyboard.press(key)
  await page.getByText('2 selected').waitFor()
  await page.getByRole('button', { name: 'Block' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click()
  await page.getByText('Enter a reason').waitFor()
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
  await notice(page, '2 links changed to: Blocked')
  const blocked = []
  for (const i of [1, 3, 5]) if (await visit(`case-${i}`) === 403) blocked.push(i)
  want('visitors are stopped', blocked.length, 2)
  await look('decided')
  await page.getByRole('button', { name: 'Undo' }).click()
  await notice(page, '2 links restored')
  want('visitors are led on', await visit(`case-${blocked[0]}`), 302)
  await page.getByLabel('Status').selectOption('closed')
  await settled('two were decided', async () => await queue.count() === 2)
  await look('reviews decided')
  await queue.first().getByRole('button').first().click()
  await page.getByText('History').waitFor()
  await page.getByText(plan.spelled, { exact: true }).first().waitFor()
  await look.both('review')
})

await person('answers an appeal on a phone', { ...lightPhone, path: '/app/safety' }, async (page, look) => {
  await call('PUT', '/links/case-0/safety', { safety: 'quarantined', reason: 'looked bad' })
  await call('POST', '/appeals', { code: 'case-0', reason: plan.hostile })
  await enter(page)
  await page.getByLabel('Source').selectOption('appeal')
  await page.getByRole('button', { name: 'Review case-0' }).waitFor()
  await look('reviews')
  await page.getByRole('button', { name: 'Review case-0' }).click()
  await page.getByLabel('Reply to the owner').fill('It was a mistake.')
  await look('review')
  await page.getByRole('button', { name: 'Answer appeal' }).click()
  await page.getByText('It was a mistake.').first().waitFor()
  want('the link is clean', (await call('GET', '/links/case-0')).safety, 'clean')
})

await person('allows a refused create', { ...lightDesk, path: '/app/safety' }, async (page, look) => {
  const refused = () => call('POST', '/links', { long_url: 'https://paypa1.com/login' })
  const { case: id } = await refused()
  await call('POST', '/appeals', { case: id, reason: plan.hostile })
  await enter(page)
  await page.getByLabel('Source').selectOption('blocked')
  await page.getByRole('button', { name: 'Review paypa1.com' }).click()
  await page.getByText('https://paypa1.com/login').waitFor()
  await page.getByRole('button', { name: 'Allow' }).click()
  await page.getByText('Enter a reason').waitFor()
  await look.both('case')
  await page.getByRole('dialog').getByRole('textbox').fill('It is their own page.')
  await page.getByRole('button', { name: 'Allow' }).click()
  await notice(page, 'Destination allowed')
  await page.getByText('It is their own page.').first().waitFor()
  want('the create works', (await refused()).safety, 'clean')
})

await person('bans, looks and lifts', { ...darkDesk, path: '/app/safety/bans', provokes: ['400'] }, async (page, look) => {
  await enter(page)
  await page.getByRole('heading', { name: 'No bans' }).waitFor()
  await page.getByRole('button', { name: 'New ban' }).click()
  await page.getByLabel('Name').fill('evil.example/')
  await page.locator('[aria-invalid=true]').waitFor()
  await page.getByLabel('Name').fill('evil.example')
  await settled('links are counted', async () => { // a slow server counts some and says so
    await page.getByLabel('Name').fill('evil.exampl')
    await page.getByLabel('Name').fill('evil.example')
    return page.getByText('Affects 6 links.').waitFor({ timeout: 10_000 }).then(() => true, () => false)
  })
  await page.getByLabel('Reason').fill(plan.markup)
  await look.both('ban')
  await page.getByRole('button', { name: 'Ban', exact: true }).click()
  await notice(page, 'Banned evil.example')
  await settled('visitors are stopped', async () => await visit('case-2') === 403)
  await look('bans')
  await page.getByRole('button', { name: 'Lift evil.example' }).click()
  await page.getByRole('dialog').getByLabel('Reason').fill('checked')
  await page.getByRole('button', { name: 'Lift ban' }).click()
  await notice(page, 'Lifted the ban')
  await settled('visitors are led on', async () => await visit('case-2') === 302)
  await page.getByRole('navigation', { name: 'Moderation sections' }).getByRole('link', { name: 'Journal' }).click()
  await page.getByText('Lifted').first().waitFor()
  await look.both('journal', { fullPage: true })
  await page.getByLabel('Entity').fill('case-1')
  await page.keyboard.press('Enter')
  await settled('the journal of one link', async () => (await page.locator('ol li').count()) === 2)
})

await person('lists words, disables a built-in one, and removes', { ...lightDesk, path: '/app/safety/lists', provokes: ['400'] }, async (page, look) => {
  await enter(page)
  await page.getByRole('heading', { name: 'No entries' }).waitFor()
  await page.getByRole('button', { name: 'Add entries' }).click()
  await page.getByRole('textbox', { name: 'Entries' }).fill('~casino\nnot a word\n')
  await page.getByLabel('Reason').fill(plan.markup)
  await page.getByRole('dialog').getByRole('button', { name: 'Add entries' }).click()
  await page.getByText('line 2').waitFor()
  await page.getByRole('textbox', { name: 'Entries' }).fill('~casino\nbingo*\n')
  await look.both('list entries')
  await page.getByRole('dialog').getByRole('button', { name: 'Add entries' }).click()
  await notice(page, '2 entries added')
  await page.getByRole('rowheader', { name: '~casino' }).waitFor()
  await look.both('lists', { fullPage: true })
  const refused = async alias => (await call('POST', '/links', { long_url: 'https://example.com/', custom_alias: alias })).status === 409
  want('cas1no is refused', await refused('cas1no'), true)
  await page.getByRole('button', { name: 'Remove ~casino' }).click()
  await notice(page, 'Removed ~casino')
  want('cas1no is created', await refused('cas1no'), false)
  await page.getByRole('combobox').selectOption('look_alikes')
  want('paypa1 is refused', await refused('paypa1'), true)
  await page.getByText('built-in entries').click()
  await page.getByRole('button', { name: 'Disable paypal' }).click()
  await notice(page, 'Disabled paypal')
  await page.getByRole('rowheader', { name: '-paypal' }).waitFor()
  await page.getByText('built-in entries').click()
  await page.getByRole('button', { name: 'Enable paypal' }).click()
  await notice(page, 'Removed -paypal')
  want('paypa1 is refused again', await refused('paypa1'), true)
  await page.getByRole('navigation', { name: 'Moderation sections' }).getByRole('link', { name: 'Journal' }).click()
  await page.getByText('Removed from a list').first().waitFor()
})

await person('sees how the server does', { ...lightDesk, path: '/app/health', provokes: ['503'] }, async (page, look, context) => {
  await enter(page)
  await page.getByRole('heading', { name: 'Storage' }).waitFor()
  await page.getByText('none recorded').waitFor()
  await look.both('health', { fullPage: true })
  await page.setViewportSize({ width: 375, height: 667 })
  await look('health on a phone', { fullPage: true })
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.route('**/api/v1/health', route => route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"type":"/problems/unavailable","title":"Unavailable","status":503}' }))
  await page.getByText('Can’t reach the server').waitFor()
  await page.route('**/api/v1/keys?**', route => route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"type":"/problems/unavailable","title":"Unavailable","status":503}' }))
  await open(page, 'API keys')
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
  await page.getByText('UTM parameters').click()
  await page.getByLabel('Source').fill('letter')
  await page.getByLabel('Campaign', { exact: true }).fill('spring')
  await page.getByRole('button', { name: 'New template' }).click()
  await page.getByLabel('Template name').fill(plan.hostile.slice(0, 50))
  await page.getByRole('button', { name: 'Create template' }).click()
  await page.getByRole('textbox', { name: 'Destination' }).fill('https://example.com/other')
  await page.getByLabel('Use a template').selectOption({ index: 0 })
  await page.getByLabel('Use a template').selectOption({ index: 1 })
  want('the template', await page.getByRole('textbox', { name: 'Destination' }).inputValue(), 'https://example.com/other?utm_source=letter&utm_campaign=spring')
  await page.getByLabel('Domain').selectOption(plan.second)
  await page.getByLabel('Alias').fill('later')
  await page.getByText(`${plan.second}/later is available`).waitFor()
  await page.getByText('QR code of the alias').click()
  await page.getByAltText('QR code of the alias').waitFor()
  await page.getByText('More options').click()
  await page.getByLabel('Active from').fill('2099-01-01T09:00')
  await look.both('form')
  await page.getByRole('button', { name: 'Create link' }).click()
  await page.getByRole('heading', { name: 'Your link is ready' }).waitFor()
  const link = await call('GET', `/links/later?domain=${plan.second}`)
  want('the link', [link.domain, link.state].join(), `${plan.second},not_yet`)
})

await the.end()
process.stdout.write(JSON.stringify(found))
