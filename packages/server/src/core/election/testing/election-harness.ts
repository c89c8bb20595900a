import { parseConfiguration, type EnsembleConfiguration, type ServerId } from '../../quorum/index.ts'
import {
  Election,
  electionDefaults,
  type ElectionInput,
  type ElectionOptions,
  type ElectionWork,
  type ElectionState,
  type ElectionTimer,
  type Notification,
  type Vote,
} from '../index.ts'

/** Returns the configuration with these voters and the lines `more`. */
export function ensemble(voters: readonly ServerId[], more = ''): EnsembleConfiguration {
  return parseConfiguration([...voters.map((id) => `server.${id}=h${id}:2888:3888`), more].join('\n'))
}

/** Steps one election and keeps the work of the last input in a form that tests compare. */
export class ElectionHarness {
  readonly election: Election
  /** The work of the last input. */
  work: readonly ElectionWork[] = []

  constructor(self: ServerId, options: Partial<ElectionOptions> = {}) {
    this.election = new Election({ self, ...electionDefaults, ...options })
  }

  step(input: ElectionInput): this {
    const works: ElectionWork[] = []
    this.election.step(input)
    for (let work = this.election.nextWork(); work !== undefined; work = this.election.nextWork())
      works.push(work)
    this.work = works
    return this
  }

  look(state: Partial<ElectionState> = {}): this {
    return this.step({
      type: 'look',
      state: { zxid: 0, epoch: 0, active: ensemble([1, 2, 3]), ...state },
    })
  }

  receive(from: ServerId, notification: Partial<Notification> & { vote: Vote }): this {
    return this.step({
      type: 'notification',
      from,
      notification: { state: 'looking', version: 2, ...notification },
    })
  }

  setReachable(to: ServerId, isReachable: boolean): this {
    return this.step({ type: 'reachability', to, isReachable })
  }

  timeout(timer: ElectionTimer): this {
    return this.step({ type: 'timeout', timer })
  }

  /** The notifications of the last work, as `to: state leader@round zxid epoch`. */
  get sent(): string[] {
    return this.work.flatMap((work) => {
      if (work.do !== 'send') return []
      const { leader, round, zxid, epoch } = work.vote
      return [`${work.to}: ${work.state} ${leader}@${round} ${zxid.toString(16)} ${epoch}`]
    })
  }

  /** All other work, by name. */
  get otherWork(): string[] {
    return this.work.flatMap((work) => {
      if (work.do === 'start') return [`${work.timer} in ${work.afterMs}`]
      if (work.do === 'decide') return [`${work.state} ${work.vote.leader}`]
      return work.do === 'configure' || work.do === 'warn' ? [work.do] : []
    })
  }
}

/** Returns a vote for a leader in a round, with its zxid and epoch. */
export const vote = (leader: ServerId, round = 1, zxid = 0, epoch = 0): Vote => ({
  leader,
  round,
  zxid,
  epoch,
})
