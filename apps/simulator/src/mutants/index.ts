import { clients } from './clients.ts'
import type { Mutation } from './mutant.ts'
import { replication } from './replication.ts'
import { storage } from './storage.ts'

/** All mutants of the server that the simulation must detect. */
export const mutations: readonly Mutation[] = [...storage, ...clients, ...replication]
export type { Change, Mutation } from './mutant.ts'
