// Plants mutants: replaces text in sources while they are bundled or loaded. Plain JavaScript, because configuration
// files and scripts that Node runs without a build import it.
import { readFileSync } from 'node:fs'
import { relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export const repository = fileURLToPath(new URL('../../..', import.meta.url))

/** Returns the changes whose text does not occur exactly once in its file. */
export function missingChanges({ changes }) {
  return changes.filter(({ file, find }) => {
    try {
      return readFileSync(resolve(repository, file), 'utf8').split(find).length !== 2
    } catch {
      return true
    }
  })
}

/** Throws an error that names the mutant and the places that no longer exist. */
export function assertApplies(mutant) {
  const missing = missingChanges(mutant)
  if (missing.length === 0) return
  const places = missing.map(({ file, find }) => `${file}: ${JSON.stringify(find)}`)
  throw new Error(
    `The mutant ${mutant.name} does not apply, adapt it to the sources:\n  ${places.join('\n  ')}`,
  )
}

/** Returns the source of a file with the changes of a mutant in it; undefined when it changes nothing there. */
export function mutate(path, { changes }) {
  const file = relative(repository, path).split(sep).join('/')
  const own = changes.filter((change) => change.file === file)
  if (own.length === 0) return undefined
  return own.reduce(
    (text, { find, replace }) => text.replace(find, () => replace),
    readFileSync(path, 'utf8'),
  )
}

/** A plugin for Vite and Vitest that loads sources with a mutant. */
export function vitePlugin(mutant) {
  assertApplies(mutant)
  return { name: 'mutant', enforce: 'pre', load: (id) => mutate(id.split('?', 1)[0], mutant) }
}

/** A plugin for esbuild that loads sources with a mutant. */
export function esbuildPlugin(mutant) {
  assertApplies(mutant)
  return {
    name: 'mutant',
    setup(builder) {
      builder.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const contents = mutate(path, mutant)
        return contents === undefined ? undefined : { contents, loader: 'ts' }
      })
    },
  }
}
