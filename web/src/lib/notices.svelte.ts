// What happened, for a few seconds, at the edge of the screen and for screen readers.
// What can be undone stays longer: finding the button takes time.
export interface Notice { id: number; text: string; bad: boolean; action?: Action | undefined }
export interface Action { text: string; run: () => unknown }

const lasts = 6000
const undoable = 20_000

class Notices {
  all = $state.raw<Notice[]>([])
  #next = 1

  say(text: string, bad = false, action?: Action) {
    const id = this.#next++
    this.all = [...this.all.slice(-2), { id, text, bad, action }]
    setTimeout(() => this.drop(id), action ? undoable : lasts)
  }

  drop(id: number) { this.all = this.all.filter(n => n.id !== id) }
}

export const notices = new Notices()
