import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { expect, it } from 'vitest'

/** Bundles one name from a built package for browsers and minifies it, as an application does. */
async function bundleOf(name: string, from: string): Promise<string> {
  const { outputFiles, warnings } = await build({
    stdin: { contents: `export { ${name} } from '${from}'`, resolveDir: import.meta.dirname },
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    minify: true,
    write: false,
  })
  expect(warnings).toEqual([])
  return outputFiles[0]!.text
}

it.each([
  ['NoNodeError', '@zabra/client', 1850],
  ['json', '@zabra/client', 1000],
  ['Mutex', '@zabra/recipes', 24_500],
])('%s of %s costs an application less than %d bytes, minified', async (name, from, limit) => {
  expect((await bundleOf(name, from)).length).toBeLessThan(limit)
})

it('connect costs a page less than 36.15 kB, minified and compressed', async () => {
  const text = await bundleOf('connect', '@zabra/client')
  // The client may use a global `Buffer` where there is one, but must not require it.
  expect(text).not.toMatch(/\bnode:|\bBuffer\.|\bprocess\./)
  expect(gzipSync(text, { level: 9 }).length).toBeLessThan(36_150)
})
