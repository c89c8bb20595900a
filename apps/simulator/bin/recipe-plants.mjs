// Plants one bug after another in the recipes, and plays seeds until the simulation finds it.
import { dirname, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { bundle } from './bundle.mjs'
import { replaceBetween, run } from './hunt-mutants.mjs'
import { bending } from './recipe-plant.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const recipes = resolve(here, '../../../packages/recipes')

/** Resolves to the number of bugs that were not found. */
export async function plantAll(names, { seeds, processes, write }) {
  const { planted } = await import(pathToFileURL(await bundle('recipes/planted.ts')).href)
  const chosen = planted.filter(({ scene }) => names === 'all' || names.split(',').includes(scene))
  if (chosen.length === 0) throw new RangeError(`Expected a recipe with a planted bug, got ${names}`)
  const rows = []
  const left = [...chosen.entries()]
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [place, plant] = next
      const row = { ...plant, ...(await hunt(plant, seeds)) }
      rows[place] = row
      const how = row.first === undefined ? 'NOT FOUND' : `found by seed ${row.first.seed}: ${row.first.what}`
      console.log(`${plant.scene.padEnd(20)} ${how.slice(0, 160)}, ${row.seconds.toFixed(1)} s`)
    }
  }
  await Promise.all(Array.from({ length: processes }, work))
  const missed = rows.filter(({ first }) => first === undefined).length
  if (write) writeTable(rows)
  console.log(`plants: ${rows.length} planted, ${missed} not found`)
  return missed
}

async function hunt({ scene, plant, module }, seeds) {
  const file = await bundle('recipes/main.ts', { name: scene, changes: [] }, [
    bending(plant, module, recipes),
  ])
  const begun = performance.now()
  const output = await run(file, ['--recipes', scene, '--hunt', '--seeds', String(seeds)])
  const result = JSON.parse(output.trim().split('\n').at(-1))
  return { ...result, seconds: (performance.now() - begun) / 1000 }
}

function writeTable(rows) {
  const lines = rows.map(
    ({ scene, bug, first, seconds }) =>
      `| ${scene} | ${bug} | ${first === undefined ? '**not found**' : first.seed} | ${seconds.toFixed(1)} |`,
  )
  const table = ['| recipe | the bug | seeds | seconds |', '| --- | --- | ---: | ---: |', ...lines].join('\n')
  replaceBetween('recipes', table)
}
