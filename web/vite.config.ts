import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vite'

// The server's policy allows scripts and styles of its own origin alone, so nothing may
// be put into the page itself: no data: addresses and no polyfill.
export default defineConfig({
  base: '/app/',
  plugins: [svelte()],
  logLevel: 'warn',
  build: {
    outDir: 'build',
    target: ['chrome125', 'firefox128', 'safari17.5'],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { checks: { bundlerTimings: false } }
  },
  server: { proxy: { '/api': 'http://localhost:8080' } } // npm run dev, beside curt serve
})
