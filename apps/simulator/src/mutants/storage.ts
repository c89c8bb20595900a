import type { ServerMutant } from './mutant.ts'

const log = 'packages/server/src/persistence/txn-log.ts'
const recover = 'packages/server/src/persistence/recover.ts'

export const storage: readonly ServerMutant[] = [
  {
    name: 'acknowledge-before-sync',
    defect: 'Writes are acknowledged when the system has them, before they are on disk.',
    servers: 1,
    changes: [
      { file: log, find: '{ create: true, durable })', replace: '{ create: true, durable: false })' },
    ],
  },
  {
    name: 'log-folder-not-synced',
    defect: 'The folder is not synced after a new log file is created.',
    servers: 1,
    changes: [
      { file: log, find: 'if (batch.startsFile) await this.#o.disk.syncFolder(this.#o.folder)', replace: '' },
    ],
  },
  {
    name: 'unsynced-tail-trusted',
    defect: 'Recovery serves an unsynced tail of the log without making it durable.',
    servers: 1,
    changes: [{ file: recover, find: 'await replay.vouch()', replace: '' }],
  },
  {
    name: 'sync-error-ignored',
    defect: 'A failed write of the log counts as done.',
    servers: 1,
    changes: [
      {
        file: log,
        find: 'await this.#file!.write(bytes, this.#position)',
        replace: 'await this.#file!.write(bytes, this.#position).catch(() => {})',
      },
    ],
  },
  {
    name: 'sessions-lost-in-replay',
    defect: 'Recovery forgets sessions that were created after the newest snapshot.',
    servers: 1,
    changes: [
      {
        file: recover,
        find: 'if (txn.type === OpCode.createSession) this.sessions.set(header.sessionId, txn.timeOut)',
        replace: '',
      },
    ],
  },
  {
    name: 'ended-sessions-return',
    defect: 'Recovery keeps sessions that ended after the newest snapshot.',
    servers: 1,
    changes: [
      {
        file: recover,
        find: 'if (txn.type === OpCode.closeSession) this.sessions.delete(header.sessionId)',
        replace: '',
      },
    ],
  },
]
