import { build } from 'esbuild'

/** Bundles and minifies a module for browsers, as an application does. */
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
