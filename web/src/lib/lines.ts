// A file line by line, however large: a piece of it is in memory at a time.
export const maxRow = 128 << 10 // bytes: of a row, as the command line has it

export interface Line { text: string, size: number, wrong?: 'long' | 'encoding' | 'nul' }

export class Lines {
  #reader: ReadableStreamDefaultReader<Uint8Array>
  #decoder = new TextDecoder('utf-8', { fatal: true }) // takes a byte order mark away
  #rest = new Uint8Array(0) // of a line whose end was not read yet
  #dropped = 0 // bytes of it that were too many
  #held: Line[] = []
  #at = 0 // lines of held that were taken
  #ended = false
  number = 0 // of the last line that was taken
  bytes = 0 // up to its end

  constructor(file: Blob) { this.#reader = file.stream().getReader() }

  // look returns the i-th line that was not taken yet; undefined behind the last.
  async look(i: number): Promise<Line | undefined> {
    while (this.#held.length - this.#at <= i && !this.#ended) await this.#read()
    return this.#held[this.#at + i]
  }

  take(n: number) {
    for (let i = 0; i < n; i++) this.bytes += this.#held[this.#at + i]!.size
    this.#at += n
    this.number += n
  }

  close(): Promise<void> { return this.#reader.cancel() }

  async #read() {
    const { done, value } = await this.#reader.read()
    this.#held = this.#held.slice(this.#at)
    this.#at = 0
    if (done) {
      this.#ended = true
      if (this.#rest.length + this.#dropped > 0) this.#keep(this.#rest)
      return
    }
    let from = 0
    for (let end; (end = value.indexOf(10, from)) >= 0; from = end + 1) this.#keep(this.#joined(value.subarray(from, end + 1)))
    this.#rest = this.#joined(value.subarray(from)).slice()
    if (this.#rest.length > maxRow) {
      this.#dropped += this.#rest.length
      this.#rest = new Uint8Array(0)
    }
  }

  #joined(piece: Uint8Array): Uint8Array<ArrayBuffer> {
    if (this.#rest.length === 0) return piece as Uint8Array<ArrayBuffer>
    const whole = new Uint8Array(this.#rest.length + piece.length)
    whole.set(this.#rest)
    whole.set(piece, this.#rest.length)
    this.#rest = new Uint8Array(0)
    return whole
  }

  #keep(bytes: Uint8Array) {
    const size = bytes.length + this.#dropped
    this.#dropped = 0
    this.#rest = new Uint8Array(0)
    if (size > maxRow) this.#held.push({ text: '', size, wrong: 'long' })
    else if (bytes.includes(0)) this.#held.push({ text: '', size, wrong: 'nul' })
    else {
      try {
        this.#held.push({ text: this.#decoder.decode(bytes), size })
      } catch {
        this.#held.push({ text: '', size, wrong: 'encoding' })
      }
    }
  }
}
