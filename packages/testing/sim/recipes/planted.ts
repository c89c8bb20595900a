import { plants } from '../../../recipes/src/testdata/plants.ts'
import { scenes } from '../../../recipes/src/testdata/plays/index.ts'

/** The bug of each recipe that has one, for the processes that plant them. */
export const planted = Object.entries(scenes).flatMap(([scene, { plant }]) => {
  if (plant === undefined) return []
  const { bug, module } = plants[plant]!
  return [{ scene, plant, bug, module }]
})
