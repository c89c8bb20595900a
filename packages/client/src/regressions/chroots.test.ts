import { afterEach, beforeEach, expect, it } from 'vitest'
import { ManualWorld } from '../testing/manual-world.ts'
import type { Client } from '../types.ts'

let world: ManualWorld
let client: Client
beforeEach(async () => {
  world = await ManualWorld.start()
  client = await world.client({ sessionTimeout: 3000 })
})
afterEach(() => world.end())

it('deleting everything below a chroot spares no znode that happens to be called zookeeper', async () => {
  await world.outcome(client.mkdirp('/app/zookeeper/x'))
  const view = client.chroot('/app')
  await world.outcome(view.delete('/', { recursive: true }))
  expect((await world.outcome(client.getChildren('/app'))).children).toEqual([])
})

it('a missing chroot is named by reads of it too', async () => {
  const view = await world.client({ servers: 'a:2181/none' })
  await expect(world.outcome(view.getChildren('/'))).rejects.toMatchObject({ code: 'NO_CHROOT' })
})
