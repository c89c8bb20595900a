import type { WireRecord } from '../history/zab-wire.ts'
import type { Host } from '../world/process.ts'
import type { World } from '../world/world.ts'

/** Reads what goes between servers. */
export class ZabWire {
  readonly record: WireRecord = { committed: new Set(), wrong: [] }
  readonly counts: Record<string, number> = {}
  leader: Host | undefined

  constructor(_world: World) {}
}
