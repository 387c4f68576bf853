// What happened, for a few seconds, at the edge of the screen and for screen readers.
export interface Notice { id: number; text: string; bad: boolean }

const lasts = 6000

class Notices {
  all = $state<Notice[]>([])
  #next = 1

  say(text: string, bad = false) {
    const id = this.#next++
    this.all = [...this.all.slice(-2), { id, text, bad }]
    setTimeout(() => this.drop(id), lasts)
  }

  drop(id: number) { this.all = this.all.filter(n => n.id !== id) }
}

export const notices = new Notices()
