import { CLIENT_PORT } from '@zabra/testing'
import { OBSERVER_PORT } from '../simulation/observer-monitor.ts'

/** A port that strangers connect to. */
export type StrangerPort = 'client' | 'quorum' | 'election' | 'observers'

export const PORTS: Readonly<Record<StrangerPort, number>> = {
  client: CLIENT_PORT,
  quorum: 2888,
  election: 3888,
  observers: OBSERVER_PORT,
}
