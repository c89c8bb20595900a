export { Lease, type LeaseHandle, type LeaseOptions } from './lease.ts'
