import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig, type Plugin } from 'vite'

// The screens that most people open first are one file with all that they share. The page
// names it, so that browsers fetch it beside the first one and not after it.
const groups = [
  { name: 'first', test: /src\/main\.ts$/, priority: 2 },
  { name: 'usual', test: /src\/screens\/Links?Screen\.svelte$/, priority: 1 }
]

function preload(): Plugin {
  return {
    name: 'preload',
    transformIndexHtml: (_, { bundle }) => Object.keys(bundle ?? {}).filter(name => /^assets\/usual-.*\.js$/.test(name)).map(name => (
      { tag: 'link', attrs: { rel: 'modulepreload', crossorigin: true, href: `/app/${name}` }, injectTo: 'head' }
    ))
  }
}

// The server's policy allows scripts and styles of its own origin alone, so nothing may
// be put into the page itself: no data: addresses and no polyfill.
export default defineConfig({
  base: '/app/',
  plugins: [svelte(), preload()],
  logLevel: 'warn',
  build: {
    outDir: 'build',
    target: ['chrome125', 'firefox128', 'safari17.5'],
    assetsInlineLimit: 0,
    cssCodeSplit: false, // all of it is as large as a screen, and what waits for a style sheet waits twice
    modulePreload: false,
    reportCompressedSize: false,
    rolldownOptions: {
      checks: { bundlerTimings: false },
      output: { codeSplitting: { groups } }
    }
  },
  server: { proxy: { '/api': 'http://localhost:8080' } } // npm run dev, beside curt serve
})
