import { graphql, type ResultOf } from "../api/graphql.ts";

export const DevicesFeed = graphql(`
  subscription DevicesFeed($after: FeedCursor) {
    deviceFeed(after: $after) {
      cursor kind more removedIds at
      upserts { id name platform scopes content state pairedAt lastSeenAt revokedAt isCaller }
    }
  }
`);

export const PairingsFeed = graphql(`
  subscription PairingsFeed($after: FeedCursor) {
    pairingFeed(after: $after) {
      cursor kind more removedIds at
      upserts { id state end name platform scopes expiresAt }
    }
  }
`);

export const CreatePairing = graphql(`
  mutation CreatePairing($input: CreatePairingInput!) {
    createPairing(input: $input) {
      __typename
      ... on CreatePairingPayload { link expiresInSeconds pairing { id } }
      ... on UserError { code message }
    }
  }
`);

export const ConfirmPairing = graphql(`
  mutation ConfirmPairing($input: ConfirmPairingInput!) {
    confirmPairing(input: $input) {
      __typename
      ... on ConfirmPairingPayload { device { id } }
      ... on UserError { code message }
    }
  }
`);

export const CancelPairing = graphql(`
  mutation CancelPairing($input: CancelPairingInput!) {
    cancelPairing(input: $input) { __typename ... on UserError { code message } }
  }
`);

export const RenameDevice = graphql(`
  mutation RenameDevice($input: RenameDeviceInput!) {
    renameDevice(input: $input) {
      __typename
      ... on RenameDevicePayload { device { id } }
      ... on UserError { code message }
    }
  }
`);

export const RevokeDevice = graphql(`
  mutation RevokeDevice($input: RevokeDeviceInput!) {
    revokeDevice(input: $input) {
      __typename
      ... on RevokeDevicePayload { device { id } }
      ... on UserError { code message }
    }
  }
`);

export type DeviceRow = ResultOf<typeof DevicesFeed>["deviceFeed"]["upserts"][number];
export type PairingRow = ResultOf<typeof PairingsFeed>["pairingFeed"]["upserts"][number];
