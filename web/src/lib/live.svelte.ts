// A count that moves while one looks: server-sent events, read with the key, which an
// EventSource could not show.
import { Refused } from '../api/client'

export type Open = (signal: AbortSignal) => Promise<ReadableStream<Uint8Array<ArrayBuffer>>>

const first = 1000 // milliseconds until it is tried again, doubled each time
const most = 30_000

export class Live {
  clicks = $state<number>()
  connected = $state(false)
  lost = $state.raw<Date>() // since when nothing comes, once that is more than a pause
  #open: Open

  constructor(open: Open) { this.#open = open }

  // run follows the count until what it returns is called.
  run(): () => void {
    const going = new AbortController()
    void this.#follow(going.signal)
    return () => going.abort()
  }

  async #follow(signal: AbortSignal) {
    let broke: Date | undefined
    for (let wait = first; !signal.aborted; wait = Math.min(2 * wait, most)) {
      const cut = new AbortController() // a network that went away ends no stream: it falls silent
      const off = () => cut.abort()
      addEventListener('offline', off)
      try {
        const stream = await this.#open(AbortSignal.any([signal, cut.signal]))
        for await (const event of events(stream)) {
          this.connected = true
          this.lost = broke = undefined
          this.clicks = event.clicks
          wait = first
        }
      } catch (e) {
        if (e instanceof Refused && (e.status === 403 || e.status === 404)) return
        if (!signal.aborted && broke) this.lost = broke
      } finally {
        removeEventListener('offline', off)
      }
      this.connected = false
      broke ??= new Date()
      await pause(wait, signal)
    }
  }
}

// pause waits for so many milliseconds, or until the browser is online again, or nobody
// looks any more.
function pause(wait: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(over, wait)
    function over() {
      clearTimeout(timer)
      removeEventListener('online', over)
      signal.removeEventListener('abort', over)
      resolve()
    }
    addEventListener('online', over)
    signal.addEventListener('abort', over)
  })
}

// events yields what each event of a stream says.
async function * events(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<{ clicks: number }> {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const whole = (text + value).split('\n\n')
    text = whole.pop()!
    for (const event of whole) {
      const data = event.split('\n').find(line => line.startsWith('data: '))
      if (data) yield JSON.parse(data.slice('data: '.length))
    }
  }
}
