import { vi } from 'vitest'
import { mutants } from './mutants.ts'

const plant = mutants[process.env['ZABRA_PLANT'] ?? '']
if (plant === undefined)
  throw new Error(`Expected ZABRA_PLANT to be one of ${Object.keys(mutants).join(', ')}`)
vi.doMock(`../${plant.module}`, async (importOriginal) => {
  const original = await importOriginal<Record<string, unknown>>()
  return { ...original, ...plant.mutate(original) }
})
