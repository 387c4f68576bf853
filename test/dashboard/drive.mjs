// Reads from standard input where the dashboard is, uses it in Chromium as people do, and
// writes what it found: {"faults": […], "done": […], "figures": […], "tried": n}.
// dashboard_test.go says what stands in both. Each screen has a file of its own.
import { readFileSync } from 'node:fs'
import { adverse } from './adverse.mjs'
import { first } from './first.mjs'
import { kept } from './kept.mjs'
import { links } from './links.mjs'
import { one } from './one.mjs'
import { stage } from './person.mjs'

const screens = { first, links, one, adverse, kept }

const the = await stage(JSON.parse(readFileSync(0, 'utf8')))

// CURT_TEST_SCREENS names some of them, while one is worked on.
const wanted = process.env.CURT_TEST_SCREENS?.split(',') ?? the.plan.screens
for (const name of the.plan.screens) if (wanted.includes(name)) await screens[name](the)
await the.end()
process.stdout.write(JSON.stringify(the.found))
