import { vi } from 'vitest'
import { plants } from './plants.ts'

const plant = plants[process.env['ZABRA_PLANT'] ?? '']
if (plant === undefined) throw new Error(`Expected ZABRA_PLANT to be one of ${Object.keys(plants).join(', ')}`)
vi.doMock(`../${plant.module}`, async (importOriginal) => {
  const original = await importOriginal<Record<string, unknown>>()
  return { ...original, ...plant.bend(original) }
})
