// The first minutes of a new server: somebody signs in, creates a link, sees it clicked,
// changes and deletes it. make test runs these screens alone.
import { want } from '../internal/browser/page.mjs'
import { cells, lightDesk, notice, rows } from './person.mjs'

const agent = 'Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0.0.0'

export async function first ({ plan, person, signIn, ask }) {
  await ask('/api/v1/links', { method: 'POST', body: JSON.stringify({ long_url: 'https://example.com/before', title: plan.hostile }) })

  await person('creates a link, sees it clicked, changes and deletes it', { ...lightDesk, provokes: ['401'] }, async (page, look) => {
    await page.getByLabel('API key').fill('curt_' + 'x'.repeat(30))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('Invalid or revoked API key').waitFor()
    await signIn(page)
    want('a script of a stranger', await page.evaluate(() => document.querySelector('main script, main img[src="x"]') === null), true)

    await page.keyboard.press('c')
    await page.keyboard.type('example.com/first')
    await page.keyboard.press('Tab')
    await page.keyboard.type('first')
    await page.getByText('/first is available.').waitFor()
    await page.getByText('Reserved for you until').waitFor()
    want('the alias in the form', (await ask('/api/v1/aliases/first')).state, 'reserved')
    want('a visit to a reserved alias', (await fetch(plan.base + '/first', { redirect: 'manual' })).status, 404)
    await page.getByLabel('Title').fill('The first')
    await page.getByRole('button', { name: 'Create link' }).click()
    await page.getByRole('heading', { name: 'Your link is ready' }).waitFor()
    await page.getByAltText('QR code').waitFor()
    await page.keyboard.press('Escape')
    want('the link is on top', (await cells(page, 0)).includes('The first'), true)

    for (let i = 0; i < 3; i++) want('a visit', (await fetch(plan.base + '/first', { redirect: 'manual', headers: { 'User-Agent': agent } })).status, 302)
    await page.waitForFunction(() => document.querySelector('.body .row .clicks').innerText === '3')
    await look('links')

    await rows(page).first().locator('.open').click()
    await page.getByLabel('Title').fill('Another title')
    await page.getByRole('button', { name: 'Save' }).click()
    await notice(page, 'Saved first')
    want('the title', (await ask('/api/v1/links/first')).title, 'Another title')

    await rows(page).first().locator('.open').click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('button', { name: 'Delete permanently' }).click()
    await notice(page, 'Deleted')
    want('a visit', (await fetch(plan.base + '/first', { redirect: 'manual' })).status, 410)
  })

  await person('reserves an alias, gives it back, and takes a suggestion', { ...lightDesk }, async (page, look) => {
    const state = async alias => (await ask('/api/v1/aliases/' + alias)).state
    await signIn(page)
    await page.keyboard.press('c')
    await page.getByLabel('Destination').fill('https://example.com/offer')
    await page.getByLabel('Alias').fill('offers')
    await page.getByText('Reserved for you until').waitFor()
    want('a reserved alias', await state('offers'), 'reserved')
    const released = page.waitForResponse(r => r.request().method() === 'DELETE' && r.url().includes('/reservations'))
    await page.getByLabel('Alias').fill('first') // whose link was deleted
    want('an alias that is given back', (await released).status(), 204)
    want('its state', await state('offers'), 'free')
    const other = page.getByRole('button', { name: /^first.?[0-9]+$/ }).first()
    await other.waitFor()
    await look('suggestions')
    const name = await other.innerText()
    await other.click()
    await page.getByText(`/${name} is available.`).waitFor()
    await page.getByRole('button', { name: 'Create link' }).click()
    await page.getByRole('heading', { name: 'Your link is ready' }).waitFor()
    want('the alias', (await ask('/api/v1/links/' + name)).long_url, 'https://example.com/offer')
    await page.keyboard.press('Escape')
  })

  await person('looks at all clicks', { ...lightDesk, path: '/app/clicks' }, async page => {
    await page.getByLabel('API key').fill(plan.key)
    await page.keyboard.press('Enter')
    await page.waitForFunction(() => document.querySelector('main output')?.textContent.replace(/\D/g, '') === '3')
  })
}
