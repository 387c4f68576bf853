// Creates, reads, changes and deletes a link by the client that openapi-generator made.
import { Configuration, LinksApi, LinkState, RedirectStatus, ResponseError } from './made'

declare const process: { argv: string[], exitCode: number }
const [base, key, code] = process.argv.slice(2) as [string, string, string]

async function run() {
  const links = new LinksApi(new Configuration({ basePath: base, accessToken: key }))
  const made = await links.createLink({ linkCreate: { longUrl: 'https://example.com/a', customAlias: code } })
  console.log('created', made.longUrl, made.state === LinkState.LinkStateLive)
  const read = await links.getLink({ code })
  console.log('read', read.id === made.id, read.redirectStatus === RedirectStatus.RedirectStatus302)
  const changed = await links.changeLink({ code, linkChange: { title: 'Changed' } })
  console.log('changed', changed.title, changed.longUrl)
  const gone = await links.deleteLinkRaw({ code })
  try {
    await links.getLink({ code })
  } catch (e) {
    if (!(e instanceof ResponseError)) throw e
    console.log('deleted', gone.raw.status, (await e.response.json() as { type: string }).type)
  }
}

run().catch(e => {
  console.log(e)
  process.exitCode = 1
})
