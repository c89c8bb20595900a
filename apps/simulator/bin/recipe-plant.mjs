// Bends one module of the recipes as `testdata/plants.ts` says, when the simulation of the recipes is bundled.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const BENT = 'zabra-bent'

/** An esbuild plugin that puts a bent module in the place of the one that a plant names. */
export function bending(plant, module, recipes) {
  const original = join(recipes, 'src', module)
  return {
    name: 'bending',
    setup(builder) {
      builder.onResolve({ filter: /\.ts$/ }, ({ path, resolveDir, namespace }) => {
        if (namespace === BENT || !path.startsWith('.')) return undefined
        return join(resolveDir, path) === original ? { path: original, namespace: BENT } : undefined
      })
      builder.onResolve({ filter: /.*/, namespace: BENT }, ({ path }) => ({ path }))
      builder.onLoad({ filter: /.*/, namespace: BENT }, () => ({
        contents: bentModule(plant, original, recipes),
        loader: 'js',
        resolveDir: recipes,
      }))
    },
  }
}

function bentModule(plant, original, recipes) {
  const names = [
    ...readFileSync(original, 'utf8').matchAll(/^export (?:async )?(?:function\*?|const|class) (\w+)/gm),
  ]
  return [
    `import * as original from ${JSON.stringify(original)}`,
    `import { mutants } from ${JSON.stringify(join(recipes, 'src/testing/mutants.ts'))}`,
    `const bent = { ...original, ...mutants[${JSON.stringify(plant)}].mutate(original) }`,
    ...names.map(([, name]) => `export const ${name} = bent.${name}`),
  ].join('\n')
}
