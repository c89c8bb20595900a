import { existsSync, readdirSync, readFileSync } from 'node:fs'
import {
  checkers,
  committedHistoryOf,
  committedTransactions,
  DistinctTransactions,
  readServerLog,
  type Evidence,
  type History,
  type ServerFiles,
} from 'zabra-simulator'
import type { Ensemble } from '../ensemble/ensemble.ts'

/** The files of a server as they are when they are first read. */
function filesNow(): ServerFiles {
  const files = new Map<string, { readonly bytes: Uint8Array }>()
  return {
    hasFolder: (path) => existsSync(path),
    list: (folder) => readdirSync(folder),
    file(path) {
      const file = files.get(path) ?? { bytes: readFileSync(path) }
      files.set(path, file)
      return file
    },
  }
}

/** Returns what the logs of all members say about a history. The members were synchronized and have stopped. */
export async function readEvidence(ensemble: Ensemble, history: History): Promise<Evidence> {
  const distinct = new DistinctTransactions()
  const logs = await Promise.all(
    ensemble.ids.map((id) =>
      readServerLog(`s${id}`, filesNow(), [`${ensemble.folder(id)}/version-2`], [], distinct),
    ),
  )
  return {
    history,
    committed: committedHistoryOf(committedTransactions(logs, undefined)),
    logs,
    quorum: undefined,
    readers: new Map(),
    healedAt: Infinity,
    silentSessions: new Set(),
    maxClockErrorMs: undefined,
    maxEarlyEndMs: undefined,
    maxStalenessMs: undefined,
    unnamedServers: new Set(),
    diskWasFull: false,
    epochs: [],
  }
}

/** Returns the violations that the simulator's checkers find, each a sentence. */
export const violationsOf = (evidence: Evidence): string[] =>
  checkers.flatMap((checker) => checker.check(evidence).map((what) => `${checker.name}: ${what}`))
