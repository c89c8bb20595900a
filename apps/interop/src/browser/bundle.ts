import { build } from 'esbuild'

/** One script for a page, as a bundler of an application makes it. */
export async function bundle(entry: string, conditions: readonly string[] = []): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    minify: true,
    write: false,
    conditions: [...conditions],
  })
  return outputFiles[0]!.text
}
