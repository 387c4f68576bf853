// Vite and svelte-check read this. The options are Svelte's own defaults, with runes
// everywhere: a component without them is a mistake.
export default { compilerOptions: { runes: true } }
