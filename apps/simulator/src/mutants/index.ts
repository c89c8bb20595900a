import { clients } from './clients.ts'
import type { Mutation } from './mutant.ts'
import { replication } from './replication.ts'
import { storage } from './storage.ts'

/** Every mistake that the simulation must find. */
export const mutations: readonly Mutation[] = [...storage, ...clients, ...replication]
export type { Change, Mutation } from './mutant.ts'
